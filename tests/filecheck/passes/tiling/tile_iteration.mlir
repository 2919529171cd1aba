// RUN: sparsecc opt %s -p 'tile-iteration{rows=8,positions=32}' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @k0(%A: tensor<?x?xf32, #CSR>, %x: tensor<?xf32>, %y: tensor<?xf32>) attributes {iteration.kernel, iteration.assembly = "dense", iteration.loops = ["i", "j"], iteration.maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>]} {
  %zero = arith.constant 0.000000e+00 : f32
  %0 = arith.constant 0 : index
  %ni = tensor.dim %A, %0 : tensor<?x?xf32, #CSR>
  %a0 = iteration.root %A : tensor<?x?xf32, #CSR>
  %x0 = iteration.root %x : tensor<?xf32>
  iteration.iterate "i" extent %ni case %i {
    %a1 = iteration.locate %A, %a0, %i level 0 : tensor<?x?xf32, #CSR>
    %s = iteration.iterate "j" over (%A at %a1 level 1 : tensor<?x?xf32, #CSR>) carry (%zero : f32) case %j with {0: %a2} carry (%sum) {
      %x1 = iteration.locate %x, %x0, %j level 0 : tensor<?xf32>
      %2 = iteration.value %A, %a2 : tensor<?x?xf32, #CSR> -> f32
      %3 = iteration.value %x, %x1 : tensor<?xf32> -> f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %sum, %4 : f32
      iteration.yield %5 : f32
    }
    iteration.insert %s into %y at (%i) : f32, tensor<?xf32>
  }
  func.return
}

// Eight rows a program, walked by 32 positions at a time to the end of the longest. Rows are axis 1.
// CHECK:      func.func @k0(%A_values: memref<?xf32>, %A_positions1: memref<?xi32>, %A_coordinates1: memref<?xi32>, %A_dim0: i32, %x_values: memref<?xf32>, %y_values: memref<?xf32>)
// CHECK-SAME:   tile.form = "blocks", tile.schedule = #tile.schedule<"loops", {rows = 8, columns = 1, positions = 32, sums = 1, warps = 4, late = 1, split = 1}>
// CHECK-SAME:   tile.grid = #tile.grid<[in0.dim0 / 8]>
// CHECK-SAME:   tile.args = ["in0.values", "in0.positions1", "in0.coordinates1", "in0.dim0", "in1.values", "out.values"]
// CHECK:      %program = tile.program_id 0
// CHECK:      tile.iota 1 : vector<1x8xi32>
// CHECK:      %lo = tile.load %A_positions1[%i] : memref<?xi32>, vector<1x8xi32> -> vector<1x8xi32> if %[[IN:[0-9]+]]
// CHECK:      %hi = tile.load %A_positions1
// CHECK:      %length = arith.subi %hi, %lo : vector<1x8xi32>
// CHECK-NEXT: %[[LONGEST:[0-9]+]] = tile.reduce max %length : vector<1x8xi32> -> i32
// CHECK:      %[[ACC:[0-9]+]] = scf.for %p0 = %c0 to %[[LONGEST]] step %c32 iter_args(%[[SUM:[0-9]+]] = %{{.*}}) -> (vector<32x8xf32>)
// CHECK:        %[[LASTS:[0-9]+]] = tile.compare slt, %{{.*}} : vector<32x8xi32>
// CHECK:        %j = tile.load %A_coordinates1[%at] : {{.*}} if
// CHECK:        tile.load %A_values[%at]
// CHECK:        tile.load %x_values[%j]
// CHECK-NEXT:   arith.mulf
// CHECK-NEXT:   arith.addf %[[SUM]]
// CHECK-NEXT:   scf.yield
// CHECK:      %[[TOTAL:[0-9]+]] = tile.reduce add %[[ACC]] axis 0 : vector<32x8xf32> -> vector<1x8xf32>
// CHECK-NEXT: tile.store %[[TOTAL]], %y_values[%i] : {{.*}} if %[[IN]]
