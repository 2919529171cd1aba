// RUN: sparsecc opt %s -p 'schedule-loops'
// expected-error {{the format of tensor<?x?xf64, #sparse_tensor.encoding<*>> is not chosen; run select-formats first}}
func.func @open(%A: tensor<?x?xf64, #sparse_tensor.encoding<*>>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64, #sparse_tensor.encoding<*>>, tensor<?xf64>) outs(%y : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats,schedule-loops'
// expected-error {{a reduction with arith.mulf is not an addition}}
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @product_of_row(%A: tensor<?x?xf64, #CSR>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64, #CSR>, tensor<?xf64>) outs(%y : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.addf %a, %b : f64
    %s = arith.mulf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'select-formats,schedule-loops'
// expected-error {{the subscript '(d0 + d1)' is not a plain index}}
#SV = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
func.func @window(%x: tensor<?xf64, #SV>, %k: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%x, %k : tensor<?xf64, #SV>, tensor<?xf64>) outs(%y : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'schedule-loops{vectorize=maybe}'
// expected-error {{option vectorize of pass schedule-loops wants true or false, not 'maybe'}}
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}
