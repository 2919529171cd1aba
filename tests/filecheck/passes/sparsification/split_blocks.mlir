// RUN: sparsecc opt %s -p 'select-formats,split-blocks' | filecheck %s

#BSR = #sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 2 : dense, j floordiv 3 : compressed, i mod 2 : dense, j mod 3 : dense) }>

func.func @main(%A: tensor<?x?xf64, #BSR>, %x: tensor<?xf64>, %m: index) -> tensor<?xf64> {
  %e = tensor.empty(%m) : tensor<?xf64>
  %zero = arith.constant 0.0 : f64
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64, #BSR>, tensor<?xf64>) outs(%z : tensor<?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// CHECK:       #SPARSE_i32 = #sparse_tensor.encoding<{ map = (d0, d1, d2, d3) -> (d0 : dense, d1 : compressed, d2 : dense, d3 : dense), posWidth = 32, crdWidth = 32 }>
// CHECK:       %[[A:.*]] = sparse_tensor.reinterpret_map %A : tensor<?x?xf64, #BSR_2_3_i32> to tensor<?x?x2x3xf64, #SPARSE_i32>
// CHECK-NEXT:  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (((d2 * 3) + d3))>, affine_map<(d0, d1, d2, d3) -> (((d0 * 2) + d1))>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]} ins(%[[A]], %x : tensor<?x?x2x3xf64, #SPARSE_i32>, tensor<?xf64>)
