/** How the page is built: few static files, which may be served at any path. */
import { defineConfig } from 'vite'

export default defineConfig({
  base: './',
  publicDir: false,
  build: {
    target: 'es2022',
    // The policy of the page allows no data in addresses, and needs no other code that loads modules.
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
})
