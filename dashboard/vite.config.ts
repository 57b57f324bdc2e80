import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** One page for any mount: every address in it is relative to the `<base>` that the server writes into it. */
// oxlint-disable-next-line import/no-default-export -- Vite reads the default export
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/dashboard',
    emptyOutDir: true,
    assetsDir: 'assets',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // The policy of the page allows no inline script and no data: addresses.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    // One stylesheet, so that the first paint needs one request and no page flashes.
    cssCodeSplit: false,
    reportCompressedSize: false,
  },
})
