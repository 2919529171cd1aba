// RUN: sparsecc opt %s -p 'generalize-named-ops{every=true}'
// expected-error {{pass generalize-named-ops has no option 'every'}}

func.func @main() {
  return
}
