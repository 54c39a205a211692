# Mutable globals of the module, besides the stack pointer that compilers use.
	.globaltype	kept0, i64
	.globaltype	kept1, i64
	.globaltype	kept2, f64
	.globaltype	kept3, i32
kept0:
kept1:
kept2:
kept3:

	.globl	globals_set
	.type	globals_set,@function
globals_set:
	.functype	globals_set (i64, i64, i64, i32) -> ()
	local.get	0
	global.set	kept0
	local.get	1
	global.set	kept1
	local.get	2
	f64.reinterpret_i64
	global.set	kept2
	local.get	3
	global.set	kept3
	end_function

	.globl	globals_get
	.type	globals_get,@function
globals_get:
	.functype	globals_get (i32) -> ()
	local.get	0
	global.get	kept0
	i64.store	0
	local.get	0
	global.get	kept1
	i64.store	8
	local.get	0
	global.get	kept2
	f64.store	16
	local.get	0
	global.get	kept3
	i32.store	24
	end_function
