/** The docs page takes any OpenAPI document, whatever that has or lacks. */
import { docsPage, download } from 'docs-page'
import { expect, test } from 'vitest'
import { oddDocument } from './odd-document.ts'

const html = docsPage(JSON.stringify(oddDocument))

test('every operation, tag and schema has its place', () => {
  for (const id of [
    'GET-berths-berth-',
    'replaceBerth',
    'clearBerth',
    'upload',
    'referred',
    'tag-operations',
    'tag-not-declared',
    'schema-With.dots-and_more',
    'header-Plain',
  ]) {
    expect(html.match(new RegExp(`id="${id.replaceAll('.', '\\.')}"`, 'g')), id).toHaveLength(1)
  }
})

test('nothing of the document is HTML, undefined or an object', () => {
  expect(html).toContain('Harbour &#60;&#38; &#34;Ships&#34;&#62;')
  expect(html).not.toMatch(/Not <declared>|undefined|\[object/)
})

test('parameters of the operation replace those of its path', () => {
  const [form = ''] =
    /<form class="trial" id="GET-berths-berth--form"[\s\S]*?<\/form>/.exec(html) ?? []
  expect(form.match(/name="berth"/g)).toHaveLength(1)
  expect(form).toContain('name="session"')
  expect(html).toContain('Replaces that of the path.')
})

test('a key is sent as its scheme says', () => {
  expect(html).toContain('data-key-in="header" data-key-name="Cookie" data-key-prefix="sid="')
  expect(html).toContain('https://harbour.example/api/ships?api_key=API_KEY')
})

test('the least document of all', () => {
  const least = docsPage('{"openapi":"3.1.0","info":{"title":"T","version":"1"}}')
  expect(least).toContain('<h1>T <small>1</small></h1>')
  expect(least).not.toMatch(/<section|undefined/)
})

test('the file to download has many lines, and all digits', () => {
  const text = '{"info":{"x-greatest":9223372036854775807}}'
  expect(download(text)).toBe('{\n  "info": {\n    "x-greatest": 9223372036854775807\n  }\n}\n')
})
