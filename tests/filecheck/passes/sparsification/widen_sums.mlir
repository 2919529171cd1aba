// RUN: sparsecc opt %s -p 'widen-sums' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

func.func @main(%A: tensor<?x?xf16, #CSR>, %x: tensor<?xf16>, %z: tensor<?xf16>) -> tensor<?xf16> {
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%A, %x : tensor<?x?xf16, #CSR>, tensor<?xf16>) outs(%z : tensor<?xf16>) {
  ^bb0(%a: f16, %b: f16, %y0: f16):
    %p = arith.mulf %a, %b : f16
    %s = arith.addf %y0, %p : f16
    linalg.yield %s : f16
  } -> tensor<?xf16>
  return %y : tensor<?xf16>
}

// What the sum starts from is widened, the sum is one of f32, and rounding it is an operation of its own.
// CHECK:       linalg.generic {{.*}} ins(%z : tensor<?xf16>) outs(%{{.*}} : tensor<?xf32>)
// CHECK:         arith.extf %{{.*}} : f16 to f32
// CHECK:       %y_wide = linalg.generic {{.*}} outs(%{{.*}} : tensor<?xf32>) {
// CHECK:         arith.mulf %{{.*}} : f16
// CHECK-NEXT:    arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT:    arith.addf %{{.*}} : f32
// CHECK-NEXT:    linalg.yield %{{.*}} : f32
// CHECK:       %y = linalg.generic {{.*}} ins(%y_wide : tensor<?xf32>)
// CHECK:         arith.truncf %{{.*}} : f32 to f16
// CHECK:       return %y : tensor<?xf16>
