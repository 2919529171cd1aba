// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,dot-contractions{target=sm_90,tokens=512}' | filecheck %s

#BSR = #sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense) }>

func.func @spmm(%A: tensor<?x?xf16, #BSR>, %B: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %m = tensor.dim %A, %0 : tensor<?x?xf16, #BSR>
  %n = tensor.dim %B, %1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %C = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<?x?xf16, #BSR>, tensor<?x?xf16>) outs(%e : tensor<?x?xf16>) attrs = {sparsecc.indices = ["m", "n", "k"]} {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    %r = arith.addf %c, %p : f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16>
  return %C : tensor<?x?xf16>
}

// CHECK:       %C = iteration.launch @dot0(%A, %B)
// CHECK:       func.func @dot0(%in0_positions1: memref<?xi32>, %in0_coordinates1: memref<?xi32>, %in0_values: memref<?xf16>, %in1_values: memref<?xf16>, %out_values: memref<?xf16>,
// CHECK-SAME:  tile.form = "blocks"
// CHECK-SAME:  tile.schedule = #tile.schedule<"block_rows", {tokens = 256, join = 1, warps = 8, stages = 5}>
// CHECK-SAME:  tile.grid = #tile.grid<[in0.dim0 / 32], [in1.dim1 / 256]>
// CHECK:       %lo = tile.load %in0_positions1[%{{.*}}] : memref<?xi32>, i32 -> i32
// CHECK:       %hi = tile.load %in0_positions1[%{{.*}}] : memref<?xi32>, i32 -> i32
// CHECK:       %[[SUM:.*]] = scf.for %position = %lo to %hi step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<32x256xf32>) : i32 {
// CHECK:         %[[A:.*]] = tile.load %in0_values[%{{.*}}] : memref<?xf16>, vector<32x32xi64> -> vector<32x32xf16>
// CHECK:         %column = tile.load %in0_coordinates1[%position] : memref<?xi32>, i32 -> i32
// CHECK:         %[[B:.*]] = tile.load %in1_values[%{{.*}}] : memref<?xf16>, vector<32x256xi64> -> vector<32x256xf16> if %{{.*}}
// CHECK:         tile.dot %[[A]], %[[B]], %[[ACC]] : vector<32x32xf16>, vector<32x256xf16>, vector<32x256xf32> -> vector<32x256xf32>
// CHECK:       arith.truncf %[[SUM]] : vector<32x256xf32> to vector<32x256xf16>
// CHECK:       tile.store %{{.*}}, %out_values[%{{.*}}]
