// RUN: sparsecc opt %s -p 'generalize-named-ops' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

func.func @main(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64>, %e: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %zero = arith.constant 0.0 : f64
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<?x?xf64>) -> tensor<?x?xf64>
  %C = linalg.matmul ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64>) outs(%z : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %C : tensor<?x?xf64>
}

// CHECK:       %z = linalg.fill
// CHECK-NEXT:  %C = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"], doc = "linalg.matmul"} ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64>) outs(%z : tensor<?x?xf64>) {
// CHECK:         arith.mulf
// CHECK-NEXT:    arith.addf
// CHECK-NOT:   linalg.matmul ins
