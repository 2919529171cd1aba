// RUN: sparsecc opt %s -p 'widen-sums{split=false},schedule-loops,sparsify' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>

func.func @main(%A: tensor<?x?xf16, #CSR>, %x: tensor<?xf16>) -> tensor<?xf16> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %A, %c0 : tensor<?x?xf16, #CSR>
  %z = tensor.empty(%n) : tensor<?xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%A, %x : tensor<?x?xf16, #CSR>, tensor<?xf16>) outs(%z : tensor<?xf16>) {
  ^bb0(%a: f16, %b: f16, %y0: f16):
    %p = arith.mulf %a, %b : f16
    %s = arith.addf %y0, %p : f16
    linalg.yield %s : f16
  } -> tensor<?xf16>
  return %y : tensor<?xf16>
}

// The loop carries a sum of f32, which is rounded when it is inserted.
// CHECK:       arith.constant 0.000000e+00 : f32
// CHECK:       arith.mulf %{{.*}} : f16
// CHECK:       arith.extf %{{.*}} : f16 to f32
// CHECK:       arith.addf %{{.*}} : f32
// CHECK:       arith.truncf %{{.*}} : f32 to f16
// CHECK:       iteration.insert
