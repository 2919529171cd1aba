builtin.module {
  func.func @k(%A: memref<?xf16>, %c: memref<?xui8>, %y: memref<?xf32>, %n: i32) attributes {tile.kernel, tile.form = "blocks", tile.args = ["in0.values", "in0.coordinates1", "out.values", "in0.dim0"], tile.grid = #tile.grid<[in0.dim0 / 8, in1.dim1], [in0.dim2, 4]>} {
    %pid = tile.program_id 0
    %lane = tile.iota 1 : vector<1x32xi32>
    %row = tile.splat %pid : i32 -> vector<16x32xi32>
    %all = tile.broadcast %lane : vector<1x32xi32> -> vector<16x32xi32>
    %p = arith.addi %row, %all : vector<16x32xi32>
    %m = tile.compare slt, %p, %row : vector<16x32xi32>
    %v = tile.load %A[%p] : memref<?xf16>, vector<16x32xi32> -> vector<16x32xf16> if %m : vector<16x32xi1>
    %w = tile.load %A[%p] : memref<?xf16>, vector<16x32xi32> -> vector<16x32xf16>
    %b = tile.load %c[%p] : memref<?xui8>, vector<16x32xi32> -> vector<16x32xi8>
    %k = tile.cast extui %b : vector<16x32xi8> -> vector<16x32xi32>
    %least = tile.select %m, %k, %p : vector<16x32xi32>
    %t = tile.trans %w : vector<16x32xf16> -> vector<32x16xf16>
    %z = arith.constant 0.000000e+00 : f32
    %acc = tile.splat %z : f32 -> vector<16x16xf32>
    %d = tile.dot %v, %t, %acc : vector<16x32xf16>, vector<32x16xf16>, vector<16x16xf32> -> vector<16x16xf32>
    %s = tile.reduce add %d axis 1 : vector<16x16xf32> -> vector<16x1xf32>
    %e = tile.expand_dims %s axis 0 : vector<16x1xf32> -> vector<1x16x1xf32>
    %all_of_it = tile.reduce max %e : vector<1x16x1xf32> -> f32
    tile.store %all_of_it, %y[%pid] : f32, memref<?xf32>, i32
    tile.atomic_add %all_of_it, %y[%n] : f32, memref<?xf32>, i32
    func.return
  }
}
