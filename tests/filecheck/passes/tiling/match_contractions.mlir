// RUN: sparsecc opt %s -p 'generalize-named-ops,select-formats,match-contractions{target=sm_90,tokens=64}' | filecheck %s

#W = #sparse_tensor.encoding<{ map = (n, k) -> (n : dense, k floordiv 4 : dense, k mod 4 : structured[2, 4]) }>
#CSR = #sparse_tensor.encoding<{ map = (n, k) -> (n : dense, k : compressed) }>

// A linear layer with a bias.
func.func @linear(%X: tensor<?x?xf16>, %W: tensor<?x?xf16, #W>, %bias: tensor<?xf16>) -> tensor<?x?xf16> {
  %0 = arith.constant 0 : index
  %t = tensor.dim %X, %0 : tensor<?x?xf16>
  %n = tensor.dim %W, %0 : tensor<?x?xf16, #W>
  %e = tensor.empty(%t, %n) : tensor<?x?xf16>
  %s = linalg.generic {indexing_maps = [affine_map<(b, o, k) -> (b, k)>, affine_map<(b, o, k) -> (o, k)>, affine_map<(b, o, k) -> (b, o)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%X, %W : tensor<?x?xf16>, tensor<?x?xf16, #W>) outs(%e : tensor<?x?xf16>) attrs = {sparsecc.indices = ["b", "o", "k"]} {
  ^bb0(%x: f16, %w: f16, %y: f16):
    %p = arith.mulf %x, %w : f16
    %r = arith.addf %y, %p : f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16>
  %f = tensor.empty(%t, %n) : tensor<?x?xf16>
  %Y = linalg.generic {indexing_maps = [affine_map<(b, o) -> (b, o)>, affine_map<(b, o) -> (o)>, affine_map<(b, o) -> (b, o)>], iterator_types = ["parallel", "parallel"]}
    ins(%s, %bias : tensor<?x?xf16>, tensor<?xf16>) outs(%f : tensor<?x?xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %r = arith.addf %a, %b : f16
    linalg.yield %r : f16
  } -> tensor<?x?xf16>
  return %Y : tensor<?x?xf16>
}

// A named operation whose weight comes first, of bytes.
func.func @spmm(%W: tensor<512x4096xi8, #W>, %B: tensor<4096x64xi8>) -> tensor<512x64xi8> {
  %e = tensor.empty() : tensor<512x64xi8>
  %zero = arith.constant 0 : i8
  %z = linalg.fill ins(%zero : i8) outs(%e : tensor<512x64xi8>) -> tensor<512x64xi8>
  %C = linalg.matmul ins(%W, %B : tensor<512x4096xi8, #W>, tensor<4096x64xi8>) outs(%z : tensor<512x64xi8>) -> tensor<512x64xi8>
  return %C : tensor<512x64xi8>
}

// Weights without a structure, as a 2:4 part and what is left over.
func.func @residual(%X: tensor<8x4096xbf16>, %W: tensor<14336x4096xbf16, #sparse_tensor.encoding<{ sum = [#W, #CSR] }>>) -> tensor<8x14336xf32> {
  %e = tensor.empty() : tensor<8x14336xf32>
  %Y = linalg.generic {indexing_maps = [affine_map<(t, n, k) -> (t, k)>, affine_map<(t, n, k) -> (n, k)>, affine_map<(t, n, k) -> (t, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%X, %W : tensor<8x4096xbf16>, tensor<14336x4096xbf16, #sparse_tensor.encoding<{ sum = [#W, #CSR] }>>) outs(%e : tensor<8x14336xf32>) {
  ^bb0(%x: bf16, %w: bf16, %y: f32):
    %a = arith.extf %x : bf16 to f32
    %b = arith.extf %w : bf16 to f32
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %y, %p : f32
    linalg.yield %r : f32
  } -> tensor<8x14336xf32>
  return %Y : tensor<8x14336xf32>
}

// No instruction multiplies f32.
func.func @other(%W: tensor<?x?xf32, #W>, %B: tensor<?x?xf32>, %z: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %C = linalg.matmul ins(%W, %B : tensor<?x?xf32, #W>, tensor<?x?xf32>) outs(%z : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %C : tensor<?x?xf32>
}

// CHECK:       func.func @linear(
// CHECK-NEXT:    %Y = iteration.launch @contraction0(%X, %W, %bias) : (tensor<?x?xf16>, tensor<?x?xf16, #NM_2_4_c32>, tensor<?xf16>) -> tensor<?x?xf16>
// CHECK-NEXT:    func.return %Y : tensor<?x?xf16>

// CHECK:       func.func @spmm(
// CHECK-NEXT:    %C = iteration.launch @contraction1(%W, %B)
// CHECK-NEXT:    func.return %C

// CHECK:       func.func @other(
// CHECK-NEXT:    linalg.generic {{.*}}sparsecc.format_reason = "as asked for; not on the sparse tensor cores: sm_90 has no sparse matrix instruction for f32"

// CHECK:       func.func @contraction0(%X: tensor<?x?xf16>, %W: tensor<?x?xf16, #NM_2_4_c32>, %bias: tensor<?xf16>, %Y: tensor<?x?xf16>) attributes {tile.kernel, tile.form = "fragments", tile.target = "sm_90", tile.schedule = #tile.schedule<"warpgroup", {{{.*}}tokens = 64,{{.*}}}>, tile.space = [
// CHECK-SAME:      iteration.loops = ["b", "o", "k"]
// CHECK-NEXT:    %n = tile.span "rows" %W dim 0 : tensor<?x?xf16, #NM_2_4_c32>
// CHECK-NEXT:    %t = tile.span "tokens" %X dim 0 : tensor<?x?xf16>
// CHECK-NEXT:    %sum = tile.accumulate %k along %W dim 1 carry %acc : tensor<?x?xf16, #NM_2_4_c32> -> f32 {
// CHECK-NEXT:      %values, %metadata = tile.load_packed %W[%n, %k] : tensor<?x?xf16, #NM_2_4_c32>
// CHECK-NEXT:      %x = tile.load_fragments %X[%t, %k] : tensor<?x?xf16>
// CHECK-NEXT:      %next = tile.sparse_dot "wgmma.sp" %values, %metadata, %x, %acc : f16 -> f32
// CHECK-NEXT:      tile.next %next : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    %y = tile.epilogue (%total = %sum : f32, %bias_element = %bias[%n] : tensor<?xf16>) -> f16 {
// CHECK-NEXT:      %[[WIDE:.*]] = arith.extf %bias_element : f16 to f32
// CHECK-NEXT:      %[[SUM:.*]] = arith.addf %total, %[[WIDE]] : f32
// CHECK-NEXT:      %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to f16
// CHECK-NEXT:      tile.finish %[[ROUNDED]] : f16
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.store_fragments %y into %Y[%t, %n] : tensor<?x?xf16>
// CHECK-NEXT:    func.return

// CHECK:       func.func @contraction1(
// CHECK-SAME:      tile.schedule = #tile.schedule<"staged", {tiles = 4, tokens = {{32|64}}, {{.*}}, splitk = 4, group = 8}>
// CHECK:           %next = tile.sparse_dot "mma.sp" %values, %metadata, %x, %acc : i8 -> i32
// CHECK:         %y = tile.epilogue (%total = %sum : i32) -> i8 {
// CHECK-NEXT:      %[[LOW:.*]] = arith.trunci %total : i32 to i8
// CHECK:         tile.store_fragments %y into %C[%n, %t] : tensor<512x64xi8>

// CHECK:       func.func @contraction2(
// CHECK-SAME:      tile.schedule = #tile.schedule<"ring", {tiles = 4, warps = 4, split = 1, steps = 4, ahead = 4, tokens = 8, splitk = 1}>
// CHECK:         %sum = tile.accumulate %k along %W dim 1 carry %acc : tensor<14336x4096xbf16, #{{.*}}> -> f32 {
// CHECK-NEXT:      %values, %metadata, %entries = tile.load_packed %W[%n, %k] : tensor<14336x4096xbf16, #{{.*}}>
// CHECK-NEXT:      %x = tile.load_fragments %X[%t, %k] : tensor<8x4096xbf16>
// CHECK-NEXT:      %part = tile.sparse_dot "mma.sp" %values, %metadata, %x, %acc : bf16 -> f32
// CHECK-NEXT:      %rest = tile.scatter_entries %entries : bf16
// CHECK-NEXT:      %others = tile.complement %metadata : bf16
// CHECK-NEXT:      %next = tile.sparse_dot "mma.sp" %rest, %others, %x, %part : bf16 -> f32
// CHECK-NEXT:      tile.next %next : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    tile.store_fragments %sum into %Y[%t, %n] : tensor<8x14336xf32>
