"""Other libraries' doors to the compiler. Each module needs its library; nothing else here does."""
