from opdock.plugin import KernelTable
table = KernelTable()
