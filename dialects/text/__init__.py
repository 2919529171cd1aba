"""Program text: a parser that keeps places and reads upstream's sugar, a printer with aliases."""
