// Fragments that do not verify; each error stands on the line below its expectation.

#W = #sparse_tensor.encoding<{ map = (n, k) -> (n : dense, k floordiv 4 : dense, k mod 4 : structured[2, 4]) }>
func.func @f(%v: !tile.fragment<values, f32>, %m: !tile.fragment<metadata, f32>, %x: !tile.fragment<tokens, f32>, %s: !tile.fragment<sum, f32>) {
  // expected-error@+1 {{no sparse matrix instruction multiplies f32}}
  %0 = tile.sparse_dot "mma.sp" %v, %m, %x, %s : f32 -> f32
  return
}

// -----

func.func @f(%v: !tile.fragment<values, f16>, %m: !tile.fragment<metadata, f16>, %x: !tile.fragment<tokens, f16>, %s: !tile.fragment<sum, f16>) {
  // expected-error@+1 {{products of f16 are summed in f32, not in f16}}
  %0 = tile.sparse_dot "mma.sp" %v, %m, %x, %s : f16 -> f16
  return
}

// -----

func.func @f(%v: !tile.fragment<values, f16>, %m: !tile.fragment<metadata, f16>, %x: !tile.fragment<tokens, f16>, %s: !tile.fragment<sum, f32>) {
  // expected-error@+1 {{'mma' is none of mma.sp, wgmma.sp}}
  %0 = tile.sparse_dot "mma" %v, %m, %x, %s : f16 -> f32
  return
}

// -----

func.func @f(%v: !tile.fragment<values, f16>, %m: !tile.fragment<metadata, f16>, %x: !tile.fragment<tokens, f16>, %s: !tile.fragment<sum, f32>) attributes {tile.target = "sm_80"} {
  // expected-error@+1 {{sm_80 has no wgmma.sp for f16}}
  %0 = tile.sparse_dot "wgmma.sp" %v, %m, %x, %s : f16 -> f32
  return
}

// -----

func.func @f(%v: !tile.fragment<values, f16>, %m: !tile.fragment<metadata, f16>, %x: !tile.fragment<tokens, f16>, %s: !tile.fragment<sum, f32>) attributes {tile.target = "sm_91"} {
  // expected-error@+1 {{there is no target 'sm_91'}}
  %0 = tile.sparse_dot "mma.sp" %v, %m, %x, %s : f16 -> f32
  return
}

// -----

func.func @f(%v: !tile.fragment<values, f16>, %m: !tile.fragment<metadata, f16>, %x: !tile.fragment<tokens, f16>, %s: !tile.fragment<sum, f32>) attributes {tile.target = "sm_90", tile.schedule = #tile.schedule<"warpgroup", {tokens = 64}>} {
  // expected-error@+1 {{the schedule "warpgroup" is one of wgmma.sp}}
  %0 = tile.sparse_dot "mma.sp" %v, %m, %x, %s : f16 -> f32
  return
}

// -----

// expected-error@+1 {{'weights' is none of values, metadata, entries, tokens, sum}}
func.func @f(%v: !tile.fragment<weights, f16>) {
  return
}

// -----

func.func @f(%W: tensor<8x8xf16>) {
  // expected-error@+1 {{there is no dimension 2 in tensor<8x8xf16>}}
  %n = tile.span "rows" %W dim 2 : tensor<8x8xf16>
  return
}

// -----

func.func @f(%W: tensor<8x8xf16>) {
  // expected-error@+1 {{'columns' is none of batch, tokens, rows}}
  %n = tile.span "columns" %W dim 0 : tensor<8x8xf16>
  return
}

// -----

func.func @f(%W: tensor<8x8xf16>) {
  %n = tile.span "rows" %W dim 0 : tensor<8x8xf16>
  // expected-error@+1 {{tensor<8x8xf16> is no weight that can be packed}}
  %v, %m = tile.load_packed %W[%n, %n] : tensor<8x8xf16>
  return
}

// -----

#W = #sparse_tensor.encoding<{ map = (n, k) -> (n : dense, k floordiv 4 : dense, k mod 4 : structured[2, 4]) }>
func.func @f(%W: tensor<8x8xf16, #W>) {
  %n = tile.span "rows" %W dim 0 : tensor<8x8xf16, #W>
  %t = tile.span "tokens" %W dim 1 : tensor<8x8xf16, #W>
  // expected-error@+1 {{a weight is read at rows and reduction}}
  %v, %m = tile.load_packed %W[%n, %t] : tensor<8x8xf16, #W>
  return
}

// -----

func.func @f(%X: tensor<8x8xf16>) {
  %t = tile.span "tokens" %X dim 0 : tensor<8x8xf16>
  // expected-error@+1 {{1 indices for a tensor of rank 2}}
  %x = tile.load_fragments %X[%t] : tensor<8x8xf16>
  return
}

// -----

func.func @f(%X: tensor<8x8xf16>) {
  %t = tile.span "tokens" %X dim 0 : tensor<8x8xf16>
  // expected-error@+1 {{an index is repeated}}
  %x = tile.load_fragments %X[%t, %t] : tensor<8x8xf16>
  return
}

// -----

func.func @f(%X: tensor<8x8xf16>, %i: index) {
  %t = tile.span "tokens" %X dim 0 : tensor<8x8xf16>
  // expected-error@+1 {{an index comes from tile.span or is that of tile.accumulate}}
  %x = tile.load_fragments %X[%t, %i] : tensor<8x8xf16>
  return
}

// -----

func.func @f(%X: tensor<8x8xf16>) {
  %t = tile.span "tokens" %X dim 0 : tensor<8x8xf16>
  %n = tile.span "rows" %X dim 1 : tensor<8x8xf16>
  // expected-error@+1 {{this operand is read at tokens and reduction}}
  %x = tile.load_fragments %X[%t, %n] : tensor<8x8xf16>
  return
}

// -----

func.func @f(%Y: tensor<8x8xf16>, %s: !tile.fragment<sum, f16>) {
  %t = tile.span "tokens" %Y dim 0 : tensor<8x8xf16>
  %b = tile.span "batch" %Y dim 1 : tensor<8x8xf16>
  // expected-error@+1 {{a result is written at tokens and rows}}
  tile.store_fragments %s into %Y[%t, %b] : tensor<8x8xf16>
  return
}

// -----

func.func @f(%b: tensor<8xf16>, %s: !tile.fragment<sum, f32>) {
  %n = tile.span "rows" %b dim 0 : tensor<8xf16>
  // expected-error@+1 {{an epilogue ends with tile.finish of the result's type}}
  %y = tile.epilogue (%t = %s : f32, %e = %b[%n] : tensor<8xf16>) -> f16 {
    tile.finish %t : f32
  }
  return
}

// -----

func.func @f(%b: tensor<8xf16>, %s: !tile.fragment<sum, f32>, %c: index) {
  // expected-error@+1 {{tensor.dim is no operation on scalars}}
  %y = tile.epilogue (%t = %s : f32) -> f32 {
    %d = tensor.dim %b, %c : tensor<8xf16>
    tile.finish %t : f32
  }
  return
}

// -----

func.func @f(%W: tensor<8x8xf16>, %s: !tile.fragment<sum, f16>) {
  // expected-error@+1 {{a step ends with tile.next of the sum's type}}
  %r = tile.accumulate %k along %W dim 1 carry %acc : tensor<8x8xf16> -> f32 {
    tile.next %s : f16
  }
  return
}

// -----

func.func @f(%s: !tile.fragment<sum, f32>) {
  // expected-error@+1 {{!tile.fragment<sum, f32> is given where metadata are wanted}}
  %0 = "tile.complement"(%s) : (!tile.fragment<sum, f32>) -> !tile.fragment<metadata, f32>
  return
}
