// RUN: sparsecc opt %s -p 'select-formats{strategy=fastest}'
// expected-error {{there is no strategy 'fastest'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{stratgy=inferred}'
// expected-error {{pass select-formats has no option 'stratgy'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats{strategy}'
// expected-error {{can't be read at 'strategy'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
