// RUN: sparsecc opt %s -p 'select-formats{strategy=tests.unit.selections:Last calls=10 sizes=d1:4}' | filecheck %s

// Both expressions read A: it gets one format. Of the plans of the target the last is the one here. What is known of A
// stays where it is.

#ANY = #sparse_tensor.encoding<*>
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

func.func @shared(%A: tensor<?x?xf64, #ANY> {sparsecc.stored = "COO", sparsecc.statistics = {shape = array<i64: 4, 4>, dtype = "f64", nnz = 3 : i64, exact = true, slices = [{extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}, {extent = 4 : i64, used = 3 : i64, largest = 1 : i64, mean = 0.75 : f64, deviation = 0.4 : f64, bins = array<i64: 1, 3>}], prefixes = array<i64: 3, 3>}}, %x: tensor<?xf64>, %z: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64, #ANY>, tensor<?xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  %w = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %y : tensor<?x?xf64, #ANY>, tensor<4xf64>) outs(%z : tensor<4xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y, %w : tensor<4xf64>, tensor<4xf64>
}

// CHECK:      func.func @shared(%A: tensor<?x?xf64, #[[F:[A-Z0-9_i]+]]> {sparsecc.stored = "COO", sparsecc.statistics = {shape = array<i64: 4, 4>, {{.*}} prefixes = array<i64: 3, 3>}}, %x: tensor<?xf64>
// CHECK:      ins(%A, %x : tensor<?x?xf64, #[[F]]>, tensor<?xf64>)
// CHECK:      ins(%A, %y : tensor<?x?xf64, #[[F]]>, tensor<4xf64>)

// A function of fixed formats keeps them. It has no index d1.

func.func @fixed(%A: tensor<4x4xf64, #CSR>, %x: tensor<4xf64>, %e: tensor<4xf64>) -> tensor<4xf64> {
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<4x4xf64, #CSR>, tensor<4xf64>) outs(%e : tensor<4xf64>) attrs = {sparsecc.indices = ["r", "s"]} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// CHECK:      func.func @fixed(%A: tensor<4x4xf64, #CSR_i32>, %x: tensor<4xf64>, %e: tensor<4xf64>) -> tensor<4xf64>
