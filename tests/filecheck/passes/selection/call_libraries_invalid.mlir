// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{there is no engine 'mkl'}}
func.func @f(%A: tensor<?x?xf64>, %B: tensor<?x?xf64>, %C: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %D = linalg.matmul {sparsecc.engine = "mkl"} ins(%A, %B : tensor<?x?xf64>, tensor<?x?xf64>) outs(%C : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %D : tensor<?x?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it takes dense operands; A is CSR and B is dense}}
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @f(%A: tensor<?x?xf64, #CSR>, %B: tensor<?x?xf64>, %C: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %D = linalg.matmul {sparsecc.engine = "blas"} ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64>) outs(%C : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %D : tensor<?x?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it takes one operand in CSR, CSC, BSR, COO and a dense one; A is dense and B is dense}}
func.func @f(%A: tensor<?x?xf64>, %B: tensor<?x?xf64>, %C: tensor<?x?xf64>) -> tensor<?x?xf64> {
  %D = linalg.matmul {sparsecc.engine = "scipy"} ins(%A, %B : tensor<?x?xf64>, tensor<?x?xf64>) outs(%C : tensor<?x?xf64>) -> tensor<?x?xf64>
  return %D : tensor<?x?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it takes f32 f64 c64 c128, not i32: BLAS has no integers}}
func.func @f(%A: tensor<?x?xi32>, %B: tensor<?x?xi32>, %C: tensor<?x?xi32>) -> tensor<?x?xi32> {
  %D = linalg.matmul {sparsecc.engine = "blas"} ins(%A, %B : tensor<?x?xi32>, tensor<?x?xi32>) outs(%C : tensor<?x?xi32>) -> tensor<?x?xi32>
  return %D : tensor<?x?xi32>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it does not compute for cpu}}
func.func @f(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %D = linalg.matmul {sparsecc.engine = "cublas"} ins(%A, %B : tensor<?x?xf32>, tensor<?x?xf32>) outs(%C : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %D : tensor<?x?xf32>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries{target=sm_90}'
// expected-error {{it does not compute for sm_90}}
func.func @f(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %D = linalg.matmul {sparsecc.engine = "blas"} ins(%A, %B : tensor<?x?xf32>, tensor<?x?xf32>) outs(%C : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %D : tensor<?x?xf32>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries{target=sm_90}'
// expected-error {{it adds to a tensor that it is given}}
func.func @f(%A: tensor<?x?xf32>, %B: tensor<?x?xf32>, %C: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %D = linalg.matmul {sparsecc.engine = "cublas"} ins(%A, %B : tensor<?x?xf32>, tensor<?x?xf32>) outs(%C : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %D : tensor<?x?xf32>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it does not add products up}}
func.func @f(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%y : tensor<?xf64>) attrs = {sparsecc.engine = "blas"} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.subf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it adds up other than one product}}
func.func @f(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%y : tensor<?xf64>) attrs = {sparsecc.engine = "blas"} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.addf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{it adds up other than one product}}
func.func @f(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%y : tensor<?xf64>) attrs = {sparsecc.engine = "blas"} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %p, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{a subscript is no plain index}}
func.func @f(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i + j, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%y : tensor<?xf64>) attrs = {sparsecc.engine = "blas"} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{index d1 is repeated in one tensor}}
func.func @f(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %y: tensor<?xf64>) -> tensor<?xf64> {
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
    ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%y : tensor<?xf64>) attrs = {sparsecc.engine = "blas"} {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<?xf64>
  return %r : tensor<?xf64>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries{target=sm_90}'
// expected-error {{its sums are rounded to 16 bits after each addition}}
func.func @f(%x: tensor<?xf16>, %s: tensor<f16>) -> tensor<f16> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
    ins(%x, %x : tensor<?xf16>, tensor<?xf16>) outs(%s : tensor<f16>) attrs = {sparsecc.engine = "cublas"} {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    %q = arith.addf %c, %p : f16
    linalg.yield %q : f16
  } -> tensor<f16>
  return %r : tensor<f16>
}

// -----

// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,call-libraries'
// expected-error {{its sums are in f64}}
func.func @f(%x: tensor<?xf32>, %s: tensor<f32>) -> tensor<f32> {
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
    ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%s : tensor<f32>) attrs = {sparsecc.engine = "blas"} {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %a1 = arith.extf %a : f32 to f64
    %b1 = arith.extf %b : f32 to f64
    %c1 = arith.extf %c : f32 to f64
    %p = arith.mulf %a1, %b1 : f64
    %q = arith.addf %c1, %p : f64
    %t = arith.truncf %q : f64 to f32
    linalg.yield %t : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}
