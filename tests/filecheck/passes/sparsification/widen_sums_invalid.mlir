// RUN: sparsecc opt %s -p 'widen-sums{split=false},schedule-loops,sparsify'
// expected-error {{its sums would be rounded at each step; run widen-sums before schedule-loops}}
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed), posWidth = 32, crdWidth = 32 }>
func.func @main(%A: tensor<?x?xf16, #CSR>, %x: tensor<?xf16>) -> tensor<?xf16> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %A, %c1 : tensor<?x?xf16, #CSR>
  %z = tensor.empty(%n) : tensor<?xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]} ins(%A, %x : tensor<?x?xf16, #CSR>, tensor<?xf16>) outs(%z : tensor<?xf16>) {
  ^bb0(%a: f16, %b: f16, %y0: f16):
    %p = arith.mulf %a, %b : f16
    %s = arith.addf %y0, %p : f16
    linalg.yield %s : f16
  } -> tensor<?xf16>
  return %y : tensor<?xf16>
}
