// RUN: sparsecc opt %s -p 'select-formats{strategy=always-dense}' | filecheck %s

// A plan says who computes an expression, too.

func.func @main(%A: tensor<4x4xf64, #sparse_tensor.encoding<*>> {sparsecc.stored = "COO", sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<4xf64>) -> tensor<4xf64, #sparse_tensor.encoding<*>> {
  %z = tensor.empty() : tensor<4xf64, #sparse_tensor.encoding<*>>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #sparse_tensor.encoding<*>>, tensor<4xf64>) outs(%z : tensor<4xf64, #sparse_tensor.encoding<*>>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64, #sparse_tensor.encoding<*>>
  return %y : tensor<4xf64, #sparse_tensor.encoding<*>>
}

// CHECK:      func.func @main(%A: tensor<4x4xf64> {{.*}}, %x: tensor<4xf64>) -> tensor<4xf64> {
// CHECK-NEXT:   %z = tensor.empty() : tensor<4xf64>
// CHECK:        ins(%A, %x : tensor<4x4xf64>, tensor<4xf64>) outs(%z : tensor<4xf64>) attrs =  {sparsecc.engine = "blas", {{.*}}}
