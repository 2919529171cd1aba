// RUN: sparsecc opt %s -p 'lower-iteration{width=4}'
// expected-error {{pass lower-iteration has no option 'width'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// RUN: sparsecc opt %s -p 'lower-iteration'
// expected-error {{region 0 names iterator 1 of 1}}
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @k0(%A: tensor<?x?xf64, #CSR>) attributes {iteration.kernel} {
  %a0 = iteration.root %A : tensor<?x?xf64, #CSR>
  iteration.iterate "i" over (%A at %a0 level 0 : tensor<?x?xf64, #CSR>) case %i with {1: %a1} {
  }
  return
}

// -----

// RUN: sparsecc opt %s -p 'lower-iteration'
// expected-error {{1 values are carried, 0 are named here}}
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @k0(%A: tensor<?x?xf64, #CSR>, %n: index, %z: f64) attributes {iteration.kernel} {
  %s = iteration.iterate "i" extent %n carry (%z : f64) case %i {
    iteration.yield %z : f64
  }
  return
}
