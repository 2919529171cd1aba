// RUN: sparsecc opt %s -p 'select-formats,schedule-loops' | filecheck %s

// Rows of the result are assembled in a workspace: i, k, j goes along the storage of both operands.

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#CSC = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed) }>

func.func @product(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64, #CSR>, %m: index, %n: index) -> tensor<?x?xf64, #CSR> {
  %e = tensor.empty(%m, %n) : tensor<?x?xf64, #CSR>
  %C = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64, #CSR>) outs(%e : tensor<?x?xf64, #CSR>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?x?xf64, #CSR>
  return %C : tensor<?x?xf64, #CSR>
}

// CHECK-LABEL: func.func @product
// CHECK-NOT:   sparse_tensor.convert
// CHECK:       %C = linalg.generic
// CHECK-SAME:  sparsecc.order = array<i64: 0, 2, 1>, sparsecc.assembly = "workspace"

func.func @sum(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64, #CSC>, %m: index, %n: index) -> tensor<?x?xf64, #CSR> {
  %e = tensor.empty(%m, %n) : tensor<?x?xf64, #CSR>
  %C = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64, #CSC>) outs(%e : tensor<?x?xf64, #CSR>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %s = arith.addf %a, %b : f64
    linalg.yield %s : f64
  } -> tensor<?x?xf64, #CSR>
  return %C : tensor<?x?xf64, #CSR>
}

// An operand that goes against the loop order is converted, and the conversion says why.
// CHECK-LABEL: func.func @sum
// CHECK:       %B_1 = sparse_tensor.convert %B {sparsecc.reason = "its levels go against the loop order"}
// CHECK:       linalg.generic
// CHECK-SAME:  ins(%A, %B_1
// CHECK-SAME:  sparsecc.order = array<i64: 0, 1>, sparsecc.assembly = "append"

func.func @spmm(%A: tensor<?x?xf64, #CSR>, %X: tensor<?x?xf64>, %m: index, %n: index) -> tensor<?x?xf64> {
  %e = tensor.empty(%m, %n) : tensor<?x?xf64>
  %zero = arith.constant 0.0 : f64
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<?x?xf64>) -> tensor<?x?xf64>
  %C = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %X : tensor<?x?xf64, #CSR>, tensor<?x?xf64>) outs(%z : tensor<?x?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?x?xf64>
  return %C : tensor<?x?xf64>
}

// Loop j runs along contiguous values: it is done in blocks of 32, then 8.
// CHECK-LABEL: func.func @spmm
// CHECK:       linalg.generic
// CHECK-SAME:  sparsecc.assembly = "dense", sparsecc.vector = array<i64: 1, 16, 4>
