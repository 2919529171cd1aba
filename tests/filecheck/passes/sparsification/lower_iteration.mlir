// RUN: sparsecc opt %s -p 'select-formats,schedule-loops,sparsify,lower-iteration' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

func.func @main(%A: tensor<?x?xf64, #CSR>, %x: tensor<?xf64>, %m: index) -> tensor<?xf64> {
  %e = tensor.empty(%m) : tensor<?xf64>
  %zero = arith.constant 0.0 : f64
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64, #CSR>, tensor<?xf64>) outs(%z : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// CHECK:       func.func @k0(%in0_values: memref<?xf64>, %in0_positions1: memref<?xi32>, %in0_coordinates1: memref<?xi32>, %in0_dim0: index, %in0_dim1: index, %in1_values: memref<?xf64>, %in1_dim0: index, %out_dim0: index, %out_values: memref<?xf64>)
// CHECK:         scf.for %d0 = %c0 to %in0_dim0 step %c1 {
// CHECK:           memref.load %in0_positions1[%d0]
// CHECK:           %[[next:.*]] = arith.addi %d0, %c1 : index
// CHECK:           memref.load %in0_positions1[%[[next]]]
// CHECK:           scf.for %p = %{{.*}} to %{{.*}} step %c1 iter_args(
// CHECK:             memref.load %in0_coordinates1[%p]
// CHECK:             memref.load %in0_values[%p]
// CHECK:             memref.load %in1_values[%d1]
// CHECK:           memref.store %{{.*}}, %out_values[%d0] : memref<?xf64>
