// RUN: sparsecc opt %s -p 'select-formats,schedule-loops,sparsify' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

func.func @main(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64, #CSR>, %m: index, %n: index) -> tensor<?x?xf64, #CSR> {
  %e = tensor.empty(%m, %n) : tensor<?x?xf64, #CSR>
  %C = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64, #CSR>) outs(%e : tensor<?x?xf64, #CSR>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %s = arith.addf %a, %b : f64
    linalg.yield %s : f64
  } -> tensor<?x?xf64, #CSR>
  return %C : tensor<?x?xf64, #CSR>
}

// A sum of two rows: while both last, then what is left of each.
// CHECK:         iteration.iterate "d1" over (%A at %a1 level 1 : {{.*}}, %B at %b1 level 1 : {{.*}}) assemble 1
// CHECK-NEXT:    case %d1 with {0: %a2, 1: %b2} visits {0} | {1} {
// CHECK:           arith.addf
// CHECK:         } case %{{.*}} with {0: %{{.*}}} {
// CHECK-NOT:       arith.addf
// CHECK:         } case %{{.*}} with {1: %{{.*}}} {
