// The budget of the built dashboard: what a first visit loads, and that it loads nothing from elsewhere.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'

const FOLDER = fileURLToPath(new URL('../../dist/dashboard/', import.meta.url))
const KB = 1_024

const zipped = (path: string): number => gzipSync(readFileSync(FOLDER + path)).length

it('loads less than 100 KB compressed, with all pages', () => {
  const files = ['index.html', ...readdirSync(`${FOLDER}assets`).map((name) => `assets/${name}`)]
  const total = files.reduce((sum, path) => sum + zipped(path), 0)
  expect(total).toBeLessThan(100 * KB)
})

it('loads its first page from one HTML, one stylesheet and one script', () => {
  const html = readFileSync(`${FOLDER}index.html`, 'utf8')
  const addresses = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => address)
  expect(addresses.every((address) => address.startsWith('./assets/'))).toBe(true)
  expect(addresses.filter((address) => address.endsWith('.js'))).toHaveLength(1)
  expect(addresses.filter((address) => address.endsWith('.css'))).toHaveLength(1)
  expect(html).not.toMatch(/<script(?![^>]*src=)/)
  expect(html).not.toMatch(/<style|style=/)
})
