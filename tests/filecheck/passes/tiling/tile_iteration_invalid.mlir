// RUN: sparsecc opt %s -p 'tile-iteration{rows=3}'
// expected-error {{rows of tile-iteration is 3: a block has a power of two, from 1 to 4096}}
func.func @k0(%x: tensor<?xf32>, %y: tensor<?xf32>) attributes {iteration.kernel, iteration.assembly = "dense", iteration.loops = ["i"], iteration.maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>]} {
  %0 = arith.constant 0 : index
  %n = tensor.dim %x, %0 : tensor<?xf32>
  iteration.iterate "i" extent %n case %i {
  }
  return
}

// -----

// RUN: sparsecc opt %s -p 'tile-iteration'
// expected-error {{programs would add to the same elements of the result: the loop over 'i' is a sum, and stands outside}}
func.func @k0(%A: tensor<?x?xf32>, %y: tensor<?xf32>) attributes {iteration.kernel, iteration.assembly = "dense", iteration.loops = ["i", "j"], iteration.maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>]} {
  %0 = arith.constant 0 : index
  %n = tensor.dim %A, %0 : tensor<?x?xf32>
  iteration.iterate "i" extent %n case %i {
  }
  return
}

// -----

// RUN: sparsecc opt %s -p 'tile-iteration'
// expected-error {{can't be put together on a GPU yet}}
#SV = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
func.func @k0(%A: tensor<?xf32, #SV>, %y: tensor<?xf32, #SV>) attributes {iteration.kernel, iteration.assembly = "append", iteration.loops = ["i"], iteration.maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>]} {
  return
}

// -----

// RUN: sparsecc opt %s -p 'tile-iteration'
// expected-error {{a GPU kernel can't compute on elements of type complex<f64> yet}}
func.func @k0(%x: tensor<?xcomplex<f64>>, %y: tensor<?xcomplex<f64>>) attributes {iteration.kernel, iteration.assembly = "dense", iteration.loops = ["i"], iteration.maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>]} {
  return
}
