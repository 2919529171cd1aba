// RUN: sparsecc opt %s -p 'select-formats' | filecheck %s

// The result of a product of two sparse matrices is open; it is stored by rows.

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#ANY = #sparse_tensor.encoding<*>

func.func @product(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64, #CSR>, %m: index, %n: index) -> tensor<?x?xf64, #ANY> {
  %e = tensor.empty(%m, %n) : tensor<?x?xf64, #ANY>
  %C = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64, #CSR>) outs(%e : tensor<?x?xf64, #ANY>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?x?xf64, #ANY>
  return %C : tensor<?x?xf64, #ANY>
}

// Widths are chosen too.
// CHECK:      #CSR_i32 = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
// CHECK:      func.func @product(%A: tensor<?x?xf64, #CSR_i32>, {{.*}}) -> tensor<?x?xf64, #CSR_i32>
// CHECK:      tensor.empty(%m, %n) : tensor<?x?xf64, #CSR_i32>
// CHECK:      %C = linalg.generic
// CHECK:      } -> tensor<?x?xf64, #CSR_i32>

func.func @times_dense(%A: tensor<?x?xf64, #CSR>, %x: tensor<?xf64>, %m: index) -> tensor<?xf64, #ANY> {
  %e = tensor.empty(%m) : tensor<?xf64, #ANY>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64, #CSR>, tensor<?xf64>) outs(%e : tensor<?xf64, #ANY>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64, #ANY>
  return %y : tensor<?xf64, #ANY>
}

// A vector made from a matrix is dense.
// CHECK:      func.func @times_dense({{.*}}) -> tensor<?xf64> {
// CHECK-NEXT:   %e = tensor.empty(%m) : tensor<?xf64>
