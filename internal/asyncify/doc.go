// Package asyncify has Binaryen's wasm-opt rewrite modules so that they can be left
// at their first read of standard input and entered there again.
//
// wasm-opt is a native program, and the modules are their authors': it runs in a
// private folder, is given the module by a pipe once its limits are set, and has
// bounded time, memory and output. What comes of it is a module that nobody vouches
// for, as the original is. It runs on Linux only, where the limits of another
// process can be set.
package asyncify
