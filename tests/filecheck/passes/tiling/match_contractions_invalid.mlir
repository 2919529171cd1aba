// RUN: sparsecc opt %s -p 'match-contractions{target=sm_91}'
// expected-error {{there is no target 'sm_91'}}

func.func @main() {
  return
}
// -----
// RUN: sparsecc opt %s -p 'match-contractions{tokens=few}'
// expected-error {{option tokens of pass match-contractions wants an integer}}

func.func @main() {
  return
}
// -----
// RUN: sparsecc opt %s -p 'match-contractions{tokens=-1}'
// expected-error {{tokens is -1; match-contractions wants 0 (not known) or more}}

func.func @main() {
  return
}
