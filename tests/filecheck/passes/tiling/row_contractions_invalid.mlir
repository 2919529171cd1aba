// RUN: sparsecc opt %s -p 'row-contractions{target=sm_91}'
// expected-error {{there is no target 'sm_91'}}

func.func @main() {
  return
}
// -----
// RUN: sparsecc opt %s -p 'row-contractions{length=-1}'
// expected-error {{length is -1; row-contractions wants 0 (not known) or more}}

func.func @main() {
  return
}
// -----
// RUN: sparsecc opt %s -p 'select-formats,row-contractions{member=40}'
// expected-error {{schedules, and member of row-contractions is 40}}

#CSR = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, j : compressed) }>

func.func @spmv(%A: tensor<?x?xf32, #CSR>, %x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.constant 0 : index
  %m = tensor.dim %A, %0 : tensor<?x?xf32, #CSR>
  %e = tensor.empty(%m) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf32, #CSR>, tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {sparsecc.indices = ["m", "k"]} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %c, %p : f32
    linalg.yield %r : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
