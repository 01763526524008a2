/** The docs page renders any OpenAPI document, including unusual and minimal ones. */
import { docsPage, download } from 'docs-page'
import { expect, test } from 'vitest'
import { oddDocument } from './odd-document.ts'

const html = docsPage(JSON.stringify(oddDocument))

test('every operation, tag and schema is on the page once', () => {
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

test('text of the document is escaped, and missing fields do not appear as undefined', () => {
  expect(html).toContain('Harbour &#60;&#38; &#34;Ships&#34;&#62;')
  expect(html).not.toMatch(/Not <declared>|undefined|\[object/)
})

test('parameters of an operation override those of its path', () => {
  const [form = ''] =
    /<form class="trial" id="GET-berths-berth--form"[\s\S]*?<\/form>/.exec(html) ?? []
  expect(form.match(/name="berth"/g)).toHaveLength(1)
  expect(form).toContain('name="session"')
  expect(html).toContain('Replaces that of the path.')
})

test('a key is sent as its security scheme requires', () => {
  expect(html).toContain('data-key-in="header" data-key-name="Cookie" data-key-prefix="sid="')
  expect(html).toContain('https://harbour.example/api/ships?api_key=API_KEY')
})

test('a minimal document has a page', () => {
  const least = docsPage('{"openapi":"3.1.0","info":{"title":"T","version":"1"}}')
  expect(least).toContain('<h1>T <small>1</small></h1>')
  expect(least).not.toMatch(/<section|undefined/)
})

test('the downloaded document has line breaks and exact integers', () => {
  const text = '{"info":{"x-greatest":9223372036854775807}}'
  expect(download(text)).toBe('{\n  "info": {\n    "x-greatest": 9223372036854775807\n  }\n}\n')
})
