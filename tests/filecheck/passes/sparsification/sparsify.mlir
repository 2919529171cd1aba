// RUN: sparsecc opt %s -p 'select-formats,schedule-loops,sparsify' | filecheck %s

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

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y = iteration.launch @k0(%A, %x) : (tensor<?x?xf64, #CSR_i32>, tensor<?xf64>) -> tensor<?xf64>
// CHECK-NEXT:    func.return %y
// CHECK:       func.func @k0(%A: tensor<?x?xf64, #CSR_i32>, %x: tensor<?xf64>, %y: tensor<?xf64>) attributes {iteration.kernel, iteration.assembly = "dense"
// CHECK:         %a0 = iteration.root %A
// CHECK:         iteration.iterate "d0" extent %nd0 case %d0 {
// CHECK-NEXT:      %a1 = iteration.locate %A, %a0, %d0 level 0
// CHECK-NEXT:      %[[s:.*]] = iteration.iterate "d1" over (%A at %a1 level 1 : tensor<?x?xf64, #CSR_i32>) carry (%zero : f64) case %d1 with {0: %a2} carry (%[[t:.*]]) {
// CHECK:             %[[a:.*]] = iteration.value %A, %a2
// CHECK:             %[[p:.*]] = arith.mulf %[[a]],
// CHECK:             %[[u:.*]] = arith.addf %[[t]], %[[p]]
// CHECK:             iteration.yield %[[u]] : f64
// CHECK:           iteration.insert %[[s]] into %y at (%d0) : f64, tensor<?xf64>
