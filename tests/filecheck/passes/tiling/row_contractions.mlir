// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,row-contractions{target=sm_90,tokens=64,reduction=4096,even=true}' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>

func.func @spmm(%A: tensor<?x?xf16, #CSR>, %B: tensor<?x?xf16>, %x: tensor<?xf16>) -> (tensor<?x?xf16>, tensor<?xf16>, tensor<?x?xf16, #CSR>) {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %m = tensor.dim %A, %0 : tensor<?x?xf16, #CSR>
  %q = tensor.dim %A, %1 : tensor<?x?xf16, #CSR>
  %n = tensor.dim %B, %1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %C = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<?x?xf16, #CSR>, tensor<?x?xf16>) outs(%e : tensor<?x?xf16>) attrs = {sparsecc.indices = ["m", "n", "k"]} {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    %r = arith.addf %c, %p : f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16>
  %f = tensor.empty(%m) : tensor<?xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf16, #CSR>, tensor<?xf16>) outs(%f : tensor<?xf16>) attrs = {sparsecc.indices = ["m", "k"]} {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    %r = arith.addf %c, %p : f16
    linalg.yield %r : f16
  } -> tensor<?xf16>
  %g = tensor.empty(%m, %q) : tensor<?x?xf16, #CSR>
  %D = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, n)>, affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %C, %B : tensor<?x?xf16, #CSR>, tensor<?x?xf16>, tensor<?x?xf16>) outs(%g : tensor<?x?xf16, #CSR>) attrs = {sparsecc.indices = ["m", "n", "k"]} {
  ^bb0(%a: f16, %u: f16, %v: f16, %c: f16):
    %p = arith.mulf %a, %u : f16
    %s = arith.mulf %p, %v : f16
    %r = arith.addf %c, %s : f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16, #CSR>
  return %C, %y, %D : tensor<?x?xf16>, tensor<?xf16>, tensor<?x?xf16, #CSR>
}

// CHECK:       %C = iteration.launch @rows0(%A, %B)
// CHECK:       %y = iteration.launch @rows1(%A, %x)
// CHECK:       %D = iteration.launch @rows2(%A, %C, %B)
// CHECK:       func.func @rows0(%in0_segments: memref<?xi32>, %in0_coordinates1: memref<?xi32>, %in0_values: memref<?xf16>, %in1_values: memref<?xf16>, %out_values: memref<?xf16>, %in1_dim1: i32, %in0_segment_count: i32, %in0_slot_count: i32, %work_partial: memref<?xf32>, %work_counters: memref<?xi32>)
// CHECK-SAME:  tile.schedule = #tile.schedule<"row_segments", {columns = 64, positions = 32, warps = 1}>
// CHECK-SAME:  tile.grid = #tile.grid<[in0.segment_count], [in1.dim1 / 64]>
// CHECK-SAME:  tile.packs = {in0 = "CSR-segments"}
// CHECK-SAME:  tile.work = #tile.grid<[4, in0.slot_count, in1.dim1], [4, in0.slot_count, in1.dim1 / 64]>
// CHECK-SAME:  tile.multiples = ["in1.values", "out.values", "in1.dim1", "work.partial"]
// CHECK:       %segment = tile.program_id 0
// CHECK:       %row = tile.load %in0_segments
// CHECK:       %parts = tile.load %in0_segments
// CHECK:       scf.for %position = %lo to %hi step %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (vector<1x64xf32>) : i32 {
// CHECK:         %column = tile.load %in0_coordinates1
// CHECK:         tile.load %in1_values[%{{.*}}] : memref<?xf16>, vector<32x64xi64> -> vector<32x64xf16> if
// CHECK:         tile.reduce add %{{.*}} axis 0 : vector<32x64xf32> -> vector<1x64xf32>
// CHECK:       %{{.*}}, %done = scf.if %{{.*}} -> (vector<1x64xf32>, i1) {
// CHECK:         tile.store %{{.*}}, %work_partial
// CHECK:         %last = tile.arrive %work_counters[%{{.*}}] of %parts : memref<?xi32>, i64
// CHECK:         scf.if %last
// CHECK:           tile.load %work_partial[%{{.*}}] {tile.shared}
// CHECK:       tile.store %{{.*}}, %out_values
// CHECK:       func.func @rows1(
// CHECK-SAME:  tile.schedule = #tile.schedule<"row_bins", {lanes = 256, warps = 1}>
// CHECK-SAME:  tile.packs = {in0 = "CSR-bins"}
// CHECK:       %kind = tile.load %in0_groups
// CHECK:       func.func @rows2(%in0_rows: memref<?xi32>
// CHECK-SAME:  tile.schedule = #tile.schedule<"sampled_entries", {entries = 32, depth = 64, warps = 2}>
// CHECK-SAME:  iteration.assembly = "pattern"
// CHECK-SAME:  tile.packs = {in0 = "CSR-entries"}
// CHECK-SAME:  iteration.pattern = 0
