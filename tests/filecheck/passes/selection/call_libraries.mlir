// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries' | filecheck %s

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>

func.func @matvec(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %m: index) -> tensor<?xf64> {
  %e = tensor.empty(%m) : tensor<?xf64>
  %zero = arith.constant 0.0 : f64
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%z : tensor<?xf64>)
    attrs = {sparsecc.engine = "blas", sparsecc.indices = ["i", "j"]} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// What the result starts from is gone: the library writes all of it.
// CHECK-LABEL: func.func @matvec
// CHECK-NEXT:  %y = iteration.library_call "blas"(%A, %x) as ["i", "j"], ["j"] -> ["i"]
// CHECK-NEXT:  func.return %y

func.func @onto(%A: tensor<?x?xf32, #CSR>, %B: tensor<?x?xf32>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %D = linalg.matmul {sparsecc.engine = "scipy"} ins(%A, %B : tensor<?x?xf32, #CSR>, tensor<?x?xf32>) outs(%C : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %D : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @onto
// CHECK-NEXT:  %D = iteration.library_call "scipy"(%A, %B) onto %C as ["d0", "d2"], ["d2", "d1"] -> ["d0", "d1"]

func.func @ours(%A: tensor<?x?xf32, #CSR>, %B: tensor<?x?xf32>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %D = linalg.matmul {sparsecc.engine = "generated"} ins(%A, %B : tensor<?x?xf32, #CSR>, tensor<?x?xf32>) outs(%C : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %D : tensor<?x?xf32>
}

// CHECK-LABEL: func.func @ours
// CHECK-NEXT:  %D = linalg.generic
// CHECK-NOT:   sparsecc.engine
