module lab

go 1.19

require perhaps v0.0.0

replace perhaps => ../../../bindings/go
