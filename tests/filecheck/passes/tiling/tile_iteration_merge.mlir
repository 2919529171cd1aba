// RUN: sparsecc opt %s -p 'tile-iteration{rows=4}' | filecheck %s

#SV = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @k0(%A: tensor<?x?xf32, #SV>, %B: tensor<?x?xf32, #SV>, %y: tensor<?xf32>) attributes {iteration.kernel, iteration.assembly = "dense", iteration.loops = ["i", "j"], iteration.maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>]} {
  %zero = arith.constant 0.000000e+00 : f32
  %0 = arith.constant 0 : index
  %ni = tensor.dim %A, %0 : tensor<?x?xf32, #SV>
  %a0 = iteration.root %A : tensor<?x?xf32, #SV>
  %b0 = iteration.root %B : tensor<?x?xf32, #SV>
  iteration.iterate "i" extent %ni case %i {
    %a1 = iteration.locate %A, %a0, %i level 0 : tensor<?x?xf32, #SV>
    %b1 = iteration.locate %B, %b0, %i level 0 : tensor<?x?xf32, #SV>
    %s = iteration.iterate "j" over (%A at %a1 level 1 : tensor<?x?xf32, #SV>, %B at %b1 level 1 : tensor<?x?xf32, #SV>) carry (%zero : f32) case %j with {0: %a2, 1: %b2} carry (%sum) {
      %2 = iteration.value %A, %a2 : tensor<?x?xf32, #SV> -> f32
      %3 = iteration.value %B, %b2 : tensor<?x?xf32, #SV> -> f32
      %4 = arith.mulf %2, %3 : f32
      %5 = arith.addf %sum, %4 : f32
      iteration.yield %5 : f32
    }
    iteration.insert %s into %y at (%i) : f32, tensor<?xf32>
  }
  func.return
}

// Each of four lanes merges the two rows of its own; the loop goes on while any lane does.
// CHECK:      scf.while (%[[A:[^ ]+]] = %lo, %[[B:[^ ]+]] = %lo_1, %{{.*}}) : (vector<4xi32>, vector<4xi32>, vector<4xf32>)
// CHECK:        %[[ANY:[0-9]+]] = tile.reduce or %{{.*}} : vector<4xi1> -> i1
// CHECK-NEXT:   scf.condition(%[[ANY]])
// CHECK:        %j = arith.minsi
// CHECK:        tile.select %{{.*}} : vector<4xi32>
// CHECK:      tile.store %{{.*}}, %y_values[%i]
