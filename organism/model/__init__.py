"""What everyone needs: ids, commands, threads, principals, money, times. The standard library and msgspec only."""
