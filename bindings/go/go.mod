module perhaps

go 1.19
