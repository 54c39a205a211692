package main

import (
	"bytes"
	"encoding/binary"
	"image/color"
	"image/png"
	"testing"
)

func TestPixel(t *testing.T) {
	m, err := png.Decode(bytes.NewReader(pixel))
	if err != nil {
		t.Fatal(err)
	}
	if b := m.Bounds(); b.Dx() != 1 || b.Dy() != 1 {
		t.Errorf("bounds %v", b)
	}
	if r, g, b, a := m.At(0, 0).RGBA(); (color.RGBA64{uint16(r), uint16(g), uint16(b), uint16(a)}) != (color.RGBA64{R: 0xffff, A: 0xffff}) {
		t.Errorf("colour %x %x %x %x", r, g, b, a)
	}
}

func TestSilence(t *testing.T) {
	if size := binary.LittleEndian.Uint32(silence[4:]); int(size) != len(silence)-8 {
		t.Errorf("RIFF chunk is %d long, says %d", len(silence)-8, size)
	}
}
