// Encodings that are refused; each error stands on the line below its expectation.

// expected-error@+1 {{there is no level format 'comprssed'; did you mean 'compressed'?}}
#a = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : comprssed) }>

// -----

// expected-error@+1 {{an encoding has no key 'dimLevelType'; known: }}
#a = #sparse_tensor.encoding<{ dimLevelType = ["dense"] }>

// -----

// expected-error@+1 {{an encoding has no key 'poswidth'; did you mean 'posWidth'?}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), poswidth = 32 }>

// -----

// expected-error@+1 {{the key 'posWidth' is given twice; remove one}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), posWidth = 32, posWidth = 64 }>

// -----

#a = #sparse_tensor.encoding<{
  map = (d0) -> (d0 : compressed),
  // expected-error@+1 {{posWidth is 42 bits; use one of 0, 8, 16, 32, 64 (0: index)}}
  posWidth = 42
}>

// -----

// expected-error@+1 {{crdWidth is -32 bits; use one of}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), crdWidth = -32 }>

// -----

// expected-error@+1 {{expected a width in bits}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), crdWidth = "x" }>

// -----

// expected-error@+1 {{the encoding has no map; add map = }}
#a = #sparse_tensor.encoding<{ posWidth = 32 }>

// -----

// expected-error@+1 {{explicitVal is not supported yet}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), explicitVal = 1.0 : f32 }>

// -----

// expected-error@+1 {{the implicit value 1.000000e+00 : f32 is not supported; it must be 0}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), implicitVal = 1.0 : f32 }>

// -----

// expected-error@+1 {{a singleton must follow a compressed, loose_compressed or singleton level}}
#a = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : singleton) }>

// -----

#a = #sparse_tensor.encoding<{
  map = (d0, d1, d2) -> (
    d0 : compressed(nonunique),
    // expected-error@+1 {{only singletons can follow a singleton}}
    d1 : singleton,
    d2 : dense)
}>

// -----

#a = #sparse_tensor.encoding<{
  map = (d0, d1, d2) -> (
    d0 : compressed(nonunique),
    // expected-error@+1 {{the singletons of a COO region share one layout: all soa or none}}
    d1 : singleton(nonunique, soa),
    d2 : singleton)
}>

// -----

// expected-error@+1 {{compressed has no property 'soa'; known: nonordered, nonunique}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed(soa)) }>

// -----

// expected-error@+1 {{compressed has no property 'nonuniqe'; did you mean 'nonunique'?}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed(nonuniqe)) }>

// -----

#a = #sparse_tensor.encoding<{
  map = (d0, d1) -> (
    d0 : dense,
    // expected-error@+1 {{batch levels can only lead}}
    d1 : batch)
}>

// -----

#a = #sparse_tensor.encoding<{
  map = (d0, d1) -> (
    d0 : dense,
    d1 floordiv 4 : compressed,
    // expected-error@+1 {{a structured level can only follow dense levels}}
    d1 mod 4 : structured[2, 4])
}>

// -----

// expected-error@+1 {{structured[n, m] wants 0 < n <= m, not 5 and 4}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i floordiv 4 : dense, i mod 4 : structured[5, 4]) }>

// -----

// expected-error@+1 {{structured[2, 4] wants a level expression 'd mod 4'}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i floordiv 8 : dense, i mod 8 : structured[2, 4]) }>

// -----

// expected-error@+1 {{structured is given 0 parameters; write structured[n, m]}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i floordiv 4 : dense, i mod 4 : structured) }>

// -----

// expected-error@+1 {{dense is given 1 parameters; write dense}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i : dense[3]) }>

// -----

// expected-error@+1 {{the level expressions of d0 do not tile it, so levels can't be mapped back}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i floordiv 2 : dense, i mod 3 : compressed) }>

// -----

// expected-error@+1 {{dimension d1 has no level}}
#a = #sparse_tensor.encoding<{ map = (i, j) -> (i : compressed) }>

// -----

// expected-error@+1 {{a level stores a digit of one dimension}}
#a = #sparse_tensor.encoding<{ map = (i, j) -> (j - i : dense, j : compressed) }>

// -----

// expected-error@+1 {{there is no dimension 'k'; known: i, j}}
#a = #sparse_tensor.encoding<{ map = (i, j) -> (i : dense, k : compressed) }>

// -----

// expected-error@+1 {{the dimension 'i' is declared twice; rename one}}
#a = #sparse_tensor.encoding<{ map = (i, i) -> (i : compressed) }>

// -----

// expected-error@+1 {{'floordiv 0' wants a positive number}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i floordiv 0 : dense, i mod 2 : compressed) }>

// -----

// expected-error@+1 {{'ceildiv' is no level expression; use floordiv or mod}}
#a = #sparse_tensor.encoding<{ map = (i) -> (i ceildiv 2 : dense, i mod 2 : compressed) }>

// -----

// expected-error@+1 {{this level does not bind its variable; write 'l0 = ...'}}
#a = #sparse_tensor.encoding<{ map = {l0} (d0) -> (d0 : compressed) }>

// -----

// expected-error@+1 {{level 0 binds 'l1', but 'l0' is declared there; use one order}}
#a = #sparse_tensor.encoding<{ map = {l0, l1} (i, j) -> (l1 = i : dense, l0 = j : compressed) }>

// -----

// expected-error@+1 {{the level variable 'l0' is not declared}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (l0 = d0 : compressed) }>

// -----

#a = #sparse_tensor.encoding<{
  // expected-error@+1 {{this does not invert the level expressions; write i = l0 * 2 + l1}}
  map = {l0, l1} (i = l0 + l1 * 2) -> (l0 = i floordiv 2 : dense, l1 = i mod 2 : compressed)
}>

// -----

// expected-error@+1 {{symbols in an encoding's map are not supported yet; use constants}}
#a = #sparse_tensor.encoding<{ map = [s0] (d0) -> (d0 : compressed) }>

// -----

// expected-error@+1 {{dimension slices are not supported yet}}
#a = #sparse_tensor.encoding<{ map = (i : #sparse_tensor<slice(1, 4, 1)>) -> (i : compressed) }>

// -----

// expected-error@+1 {{a tensor of rank 0 can't be sparse}}
#a = #sparse_tensor.encoding<{ map = () -> () }>

// -----

#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
// expected-error@+1 {{the encoding maps 2 dimensions, but the tensor has 3; use a map over 3}}
func.func private @f(tensor<2x3x4xf64, #CSR>)

// -----

// expected-error@+1 {{a tensor of rank 0 can't be sparse; remove its encoding}}
func.func private @f(tensor<f64, #sparse_tensor.encoding<*>>)

// -----

#A = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
// expected-error@+1 {{a sum has at least two parts}}
#a = #sparse_tensor.encoding<{ sum = [#A] }>

// -----

// expected-error@+1 {{a part of a sum is an encoding with a map}}
#a = #sparse_tensor.encoding<{ sum = [42, 43] }>

// -----

#A = #sparse_tensor.encoding<*>
// expected-error@+1 {{a part of a sum is an encoding with a map}}
#a = #sparse_tensor.encoding<{ sum = [#A, #A] }>

// -----

#A = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#B = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>
// expected-error@+1 {{the parts of a sum have one rank, not 2, 1}}
#a = #sparse_tensor.encoding<{ sum = [#A, #B] }>

// -----

#A = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
#B = #sparse_tensor.encoding<{ sum = [#A, #A] }>
// expected-error@+1 {{a part of a sum is no sum; list all parts}}
#a = #sparse_tensor.encoding<{ sum = [#A, #B] }>

// -----

#A = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
// expected-error@+1 {{posWidth stands in the encodings of the parts; move it there}}
#a = #sparse_tensor.encoding<{ sum = [#A, #A], posWidth = 32 }>

// -----

#A = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
// expected-error@+1 {{an encoding is a map or a sum, not both; remove one}}
#a = #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed), sum = [#A, #A] }>
