// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,dot-contractions{target=sm_100,tokens=128}' | filecheck %s

#BITMAP = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : bitmap) }>

func.func @linear(%X: tensor<?x?xf16>, %W: tensor<?x?xf16, #BITMAP>) -> tensor<?x?xf32> {
  %0 = arith.constant 0 : index
  %m = tensor.dim %X, %0 : tensor<?x?xf16>
  %n = tensor.dim %W, %0 : tensor<?x?xf16, #BITMAP>
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %Y = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%X, %W : tensor<?x?xf16>, tensor<?x?xf16, #BITMAP>) outs(%e : tensor<?x?xf32>) attrs = {sparsecc.indices = ["m", "n", "k"]} {
  ^bb0(%x: f16, %w: f16, %y: f32):
    %a = arith.extf %x : f16 to f32
    %b = arith.extf %w : f16 to f32
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %y, %p : f32
    linalg.yield %r : f32
  } -> tensor<?x?xf32>
  return %Y : tensor<?x?xf32>
}

// CHECK:       %Y = iteration.launch @dot0(%X, %W)
// CHECK:       func.func @dot0(%in0_values: memref<?xf16>, %in1_words: memref<?xi32>, %in1_starts: memref<?xi16>, %in1_offsets: memref<?xi32>, %in1_values: memref<?xf16>, %out_values: memref<?xf32>,
// CHECK-SAME:  tile.schedule = #tile.schedule<"bitmap", {rows = 64, tokens = 128, warps = 4, stages = 3}>
// CHECK-SAME:  tile.reason = "the weight's tiles are decompressed on chip and multiplied as dense f16, summed in f32 by tcgen05"
// CHECK:       scf.for %tile = %{{.*}} to %across step %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<64x128xf32>) : i32 {
// CHECK:         %offset = tile.load %in1_offsets[%{{.*}}]
// CHECK:         %bits = tile.load %in1_words[%{{.*}}] : memref<?xi32>, vector<64x1xi64> -> vector<64x1xi32> if %{{.*}}
// CHECK:         tile.load %in1_starts[%{{.*}}] : memref<?xi16>, vector<64x1xi64> -> vector<64x1xi16> if %{{.*}}
// CHECK:         %a = tile.load %in1_values[%place] : memref<?xf16>, vector<64x32xi32> -> vector<64x32xf16> if %{{.*}}
// CHECK:         %[[HALF:.*]] = tile.dot %a, %x, %[[ACC]] : vector<64x32xf16>, vector<32x128xf16>, vector<64x128xf32> -> vector<64x128xf32>
// CHECK:         tile.dot %{{.*}}, %{{.*}}, %[[HALF]]
