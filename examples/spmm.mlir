// C = A * B for a matrix A of compressed rows and a dense B.

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

#matmul = {
  indexing_maps = [
    affine_map<(i, j, k) -> (i, k)>,
    affine_map<(i, j, k) -> (k, j)>,
    affine_map<(i, j, k) -> (i, j)>
  ],
  iterator_types = ["parallel", "parallel", "reduction"],
  doc = "C(i,j) += A(i,k) * B(k,j)"
}

func.func @spmm(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %m = tensor.dim %A, %c0 : tensor<?x?xf64, #CSR>
  %n = tensor.dim %B, %c1 : tensor<?x?xf64>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<?x?xf64>) -> tensor<?x?xf64>
  %C = linalg.generic #matmul
    ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64>)
    outs(%init : tensor<?x?xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %product = arith.mulf %a, %b : f64
    %sum = arith.addf %c, %product : f64
    linalg.yield %sum : f64
  } -> tensor<?x?xf64>
  return %C : tensor<?x?xf64>
}
