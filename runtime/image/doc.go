// Package image keeps the memory of a module that is ready for a call, and puts
// the memories of its instances back to it, in microseconds.
//
// On Linux an image is a sealed file in memory, of which every instance has a
// private mapping: a page that a guest writes is copied by the kernel, so pages
// of its own are all that can differ from the image, and the kernel says which
// they are. Where it does not, or there is no such file, all is compared or copied.
//
// The address of a mapped memory never changes, and nothing is unmapped before
// [Memory.Release]: machine code of the guest may use it at any time until then.
package image
