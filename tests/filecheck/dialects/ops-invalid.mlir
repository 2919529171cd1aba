// Operations that do not verify; each error stands on the line below its expectation.

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @f(%a: tensor<4x6xf64, #CSR>) {
  // expected-error@+1 {{'sparse_tensor.convert' does not verify: dimension 1 is 6 in the source, 7 in the result}}
  %0 = sparse_tensor.convert %a : tensor<4x6xf64, #CSR> to tensor<4x7xf64>
  return
}

// -----

func.func @f(%a: tensor<?xf64>) {
  // expected-error@+1 {{dimension 0 is ? in the source, 7 in the result}}
  %0 = sparse_tensor.convert %a : tensor<?xf64> to tensor<7xf64>
  return
}

// -----

func.func @f(%a: tensor<4x6xf64>) {
  // expected-error@+1 {{the source has rank 2, the result 1}}
  %0 = sparse_tensor.convert %a : tensor<4x6xf64> to tensor<4xf64>
  return
}

// -----

func.func @f(%a: tensor<4x6xf64>) {
  // expected-error@+1 {{the operand must be a tensor with a sparse encoding, not tensor<4x6xf64>}}
  %0 = sparse_tensor.values %a : tensor<4x6xf64> to memref<?xf64>
  return
}

// -----

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @f(%a: tensor<4x6xf64, #CSR>) {
  // expected-error@+1 {{values are of type f64 here, not f32}}
  %0 = sparse_tensor.values %a : tensor<4x6xf64, #CSR> to memref<?xf32>
  return
}

// -----

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @f(%a: tensor<4x6xf64, #CSR>) {
  // expected-error@+1 {{there is no level 2; the format has 2}}
  %0 = sparse_tensor.positions %a {level = 2 : index} : tensor<4x6xf64, #CSR> to memref<?xindex>
  return
}

// -----

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @f(%a: tensor<4x6xf64, #CSR>) {
  // expected-error@+1 {{level 0 is dense: it has no positions}}
  %0 = sparse_tensor.positions %a {level = 0 : index} : tensor<4x6xf64, #CSR> to memref<?xindex>
  return
}

// -----

#SV = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), crdWidth = 32 }>
func.func @f(%a: tensor<4xf64, #SV>) {
  // expected-error@+1 {{coordinates are of type i32 here, not index}}
  %0 = sparse_tensor.coordinates %a {level = 0 : index} : tensor<4xf64, #SV> to memref<?xindex>
  return
}

// -----

func.func @f(%a: tensor<4xf64, #sparse_tensor.encoding<*>>) {
  // expected-error@+1 {{the operand has no format yet (<*>); choose one first}}
  %0 = sparse_tensor.positions %a {level = 0 : index} : tensor<4xf64, #sparse_tensor.encoding<*>> to memref<?xindex>
  return
}

// -----

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @f(%p: tensor<5xindex>, %v: tensor<3xf64>) {
  // expected-error@+1 {{the levels take 2 arrays, not 1}}
  %0 = sparse_tensor.assemble (%p), %v : (tensor<5xindex>), tensor<3xf64> to tensor<4x6xf64, #CSR>
  return
}

// -----

#SV = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
func.func @f(%a: tensor<4xf64, #SV>) {
  // expected-error@+1 {{inputs of sizes [4, 4] in dimension 0 can't make 9}}
  %0 = sparse_tensor.concatenate %a, %a {dimension = 0 : index} : tensor<4xf64, #SV>, tensor<4xf64, #SV> to tensor<9xf64, #SV>
  return
}

// -----

func.func @f(%x: f64, %y: f32) {
  // expected-error@+1 {{left = identity gives f64, but the result is f32}}
  %0 = sparse_tensor.binary %x, %y : f64, f32 to f32 overlap = {} left = identity right = {}
  return
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{the present region takes (f64), not ()}}
  %0 = sparse_tensor.unary %x : f64 to f64 present = {
    sparse_tensor.yield %x : f64
  } absent = {}
  return
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{the select region yields f64, but must yield i1}}
  %0 = sparse_tensor.select %x : f64 {
  ^bb0(%a: f64):
    sparse_tensor.yield %a : f64
  }
  return
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{the region must say how to combine two values; it is empty}}
  %0 = sparse_tensor.reduce %x, %x, %x : f64 {}
  return
}

// -----

func.func @f(%a: tensor<4xf64>) -> tensor<4xf64> {
  // expected-error@+1 {{there is no iterator type 'paralel'; did you mean 'parallel'?}}
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["paralel"]}
    outs(%a : tensor<4xf64>) {
  ^bb0(%x: f64):
    linalg.yield %x : f64
  } -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{there is no predicate 'lt'; did you mean}}
  %0 = arith.cmpf "lt", %x, %x : f64
  return
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{the absent region yields an argument of the kernel's body}}
  %0 = sparse_tensor.unary %x : f64 to f64 present = {} absent = {
    sparse_tensor.yield %x : f64
  }
  return
}

// -----

func.func @f(%x: f64) {
  // expected-error@+1 {{the absent region yields what the kernel's body computes}}
  %0 = sparse_tensor.unary %x : f64 to f64 present = {} absent = {
    %1 = arith.constant 1.0 : f64
    %2 = arith.addf %1, %1 : f64
    sparse_tensor.yield %2 : f64
  }
  return
}

// -----

func.func @library_lists(%A: tensor<?x?xf64>, %x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error@+1 {{2 inputs and a result have 2 lists of indices}}
  %y = iteration.library_call "blas"(%A, %x) as ["i", "j"] -> ["i"] : (tensor<?x?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// -----

func.func @library_rank(%A: tensor<?x?xf64>, %x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error@+1 {{tensor<?x?xf64> has indices i}}
  %y = iteration.library_call "blas"(%A, %x) as ["i"], ["i"] -> ["i"] : (tensor<?x?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// -----

func.func @library_result(%A: tensor<?x?xf64>, %x: tensor<?xf64>) -> tensor<?xf64> {
  // expected-error@+1 {{no input has the result's index k}}
  %y = iteration.library_call "blas"(%A, %x) as ["i", "j"], ["j"] -> ["k"] : (tensor<?x?xf64>, tensor<?xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// -----

func.func @library_start(%A: tensor<?x?xf64>, %x: tensor<?xf64>, %z: tensor<4xf64>) -> tensor<?xf64> {
  // expected-error@+1 {{what a result starts from has its type}}
  %y = iteration.library_call "blas"(%A, %x) onto %z as ["i", "j"], ["j"] -> ["i"] : (tensor<?x?xf64>, tensor<?xf64>, tensor<4xf64>) -> tensor<?xf64>
  return %y : tensor<?xf64>
}

// -----

func.func @library_scalar(%A: tensor<?x?xf64>, %x: f64) -> tensor<?xf64> {
  // expected-error@+1 {{a library takes and gives tensors, not f64}}
  %y = iteration.library_call "blas"(%A, %x) as ["i", "j"], ["j"] -> ["i"] : (tensor<?x?xf64>, f64) -> tensor<?xf64>
  return %y : tensor<?xf64>
}
