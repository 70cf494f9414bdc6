module early.parley

go 1.26.0
