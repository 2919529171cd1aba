// RUN: sparsecc opt %s -p 'split-blocks{size=2}'
// expected-error {{pass split-blocks has no option 'size'}}

func.func @main() {
  return
}
