// RUN: sparsecc opt %s -p 'dot-contractions{target=sm_91}'
// expected-error {{there is no target 'sm_91'}}

func.func @main() {
  return
}
// -----
// RUN: sparsecc opt %s -p 'select-formats,dot-contractions{member=40}'
// expected-error {{schedules, and member of dot-contractions is 40}}

#BSR = #sparse_tensor.encoding<{ map = (i, j) -> (i floordiv 32 : dense, j floordiv 32 : compressed, i mod 32 : dense, j mod 32 : dense) }>

func.func @spmm(%A: tensor<?x?xf16, #BSR>, %B: tensor<?x?xf16>) -> tensor<?x?xf16> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %m = tensor.dim %A, %0 : tensor<?x?xf16, #BSR>
  %n = tensor.dim %B, %1 : tensor<?x?xf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xf16>
  %C = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<?x?xf16, #BSR>, tensor<?x?xf16>) outs(%e : tensor<?x?xf16>) attrs = {sparsecc.indices = ["m", "n", "k"]} {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    %r = arith.addf %c, %p : f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16>
  return %C : tensor<?x?xf16>
}
