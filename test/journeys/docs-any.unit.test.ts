/** The docs page renders any OpenAPI document, including unusual and minimal ones. */
import { docsPage, download } from 'docs-page'
import { expect, test } from 'vitest'
import { oddDocument } from './odd-document.ts'

const html = docsPage(JSON.stringify(oddDocument))

/** The page of a document with these parts. */
const pageOf = (parts: object) =>
  docsPage(JSON.stringify({ openapi: '3.1.0', info: { title: 'T', version: '1' }, ...parts }))

/** The text of a page, in one line. */
const wordsOf = (page: string) =>
  page
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll(/\s+/g, ' ')

test('every operation, tag and schema is on the page once', () => {
  for (const id of [
    'GET-berths-berth-',
    'replaceBerth',
    'clearBerth',
    'moveShips',
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

test('the page has the words of unusual schemas and examples', () => {
  const words = wordsOf(html)
  for (const part of [
    'berth string or null · path required',
    'position array at least 2 items Fields item 1 number item 2 number',
    'depth number greater than 0 · less than 500 · a multiple of 0.5',
    'number integer (int64) deprecated write only 1 to 9223372036854775807',
    '(any other name) string at most 80 characters',
    'If Ship name string required read only Example: Ada length integer required',
    'If A ferry cars integer If Named',
    'neighbours array of Berth no item twice',
    'guard Named and object',
    '"ship": { "name": "Ada", "length": 0 }, "neighbours": [],', // not a berth in itself
    '{ "id": "S-1" }',
    'lit boolean default false',
    'filter any (sql) · query',
    'draft string · query deprecated',
    'A file, or its fields.',
    '"lit": false',
    'Server https://harbour.example/api Second https://berths',
    'The first request: GET-berths-berth- GET /berths/{berth} curl',
    '# cookie apiKey cookie sid query apiKey query api_key header apiKey header X-Api-Key basic http Basic oauth oauth2 Samples',
    '# /berths/{berth} GET / berths/ {berth} GET-berths-berth- Try it out Parameters', // it has no summary
    'referred Try it out It takes no parameters and no body. GET /referred',
    '2XX default 200 {',
    'There is no body The answer has no body.',
    'Fields of Berth ship Ship or null required',
    '# Berth object object ship',
    '# Named What has a name. object name',
    '# Anything any # Nothing nothing # With.dots-and_more any one of x',
    '# Plain Example Plain: 0',
    "curl -i -X DELETE 'https://harbour.example/api/berths/quay%201' Try",
    `curl -i -X PUT 'https://harbour.example/api/berths/quay%201' \\ -H "Cookie: sid=$API_KEY" \\ -H 'Content-Type: application/json' \\ --data-raw '{`,
  ]) {
    expect(words).toContain(part)
  }
})

test('forms, samples, headers and guides are those of the document', () => {
  for (const part of [
    '<body data-api="https://harbour.example/api">',
    '<input id="GET-berths-berth--path-berth"', // a choice would add an empty value
    'https://harbour.example/api/berths/north%20pier',
    'https://harbour.example/api/berths/quay%201',
    '<input id="upload-query-draft" name="draft" data-in="query" type="text" placeholder="3.5"',
    '<select id="upload-header-tide"',
    '<template data-language="wget">',
    '<input id="upload-query-wait" name="wait" data-in="query" type="text" placeholder="false"',
    'data-method="DELETE" data-path="/berths/{berth}" hidden>', // it needs no key
    'data-key-prefix="Basic "',
    'data-status="default">', // folded up, like an error
    'Headers: <code>Location</code> <a href="#header-Plain"><code>X-Depth</code></a>',
    '<a href="map.png">Map</a>',
    '<a href="tide.png">tide.png</a>', // it has no words
  ]) {
    expect(html).toContain(part)
  }
  expect(html.match(/data-entry="guide"/g)).toHaveLength(1)
  expect(html.match(/It takes no parameters/g)).toHaveLength(2)
  expect(html.match(/<form class="trial"/g)).toHaveLength(6)
  expect(html.match(/class="hint keyed"/g)).toHaveLength(5) // one needs no key
  expect(html).not.toContain('Empty')
  expect(html).not.toContain('· required') // no body is
})

test('text of the document is escaped, and missing fields do not appear as undefined', () => {
  expect(html).toContain('Harbour &#60;&#38; &#34;Ships&#34;&#62;')
  expect(html).not.toMatch(/Not <declared>|undefined|\[object/)
})

test('a summary has the words of a link and of a picture, but no link', () => {
  expect(html).toContain('<span class="title">Has a name, and a &#60;flag&#62;.</span>')
  expect(html).toContain('<span class="description">Anything else, see Tides</span>')
  for (const [summary] of html.matchAll(/<summary>.*?<\/summary>/gs)) {
    expect(summary).not.toContain('<a ')
  }
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

test('a link within the page leads to a part of it', () => {
  for (const [, id] of html.matchAll(/ href="#([^"]+)"/g)) expect(html).toContain(` id="${id}"`)
})

test('an example that is text has no quotes around it', () => {
  const content = { 'text/csv': { example: 'north,"Ada"' } }
  const post = { requestBody: { content }, responses: { 201: { content } } }
  const page = pageOf({ paths: { '/ships': { post } } })
  expect(page).not.toContain('It takes no parameters')
  // The form, and the answer in two places.
  expect(page.match(/>north,&#34;Ada&#34;<\/(textarea|pre)>/g)).toHaveLength(3)
  expect(page).toContain('--data-raw &#39;north,&#34;Ada&#34;&#39;')
})

test('a minimal document has a page', () => {
  const least = docsPage('{"openapi":"3.1.0","info":{"title":"T","version":"1"}}')
  expect(least).toContain('<h1>T <small>1</small></h1>')
  expect(least).not.toMatch(/<section|undefined|License/)
  expect([...least.matchAll(/ href="(#[^"]+)"/g)].map(([, link]) => link)).toEqual(['#top', '#top'])
})

test('a description without headings is the introduction, and code without a language has a title', () => {
  const described = (description: string) =>
    pageOf({ info: { title: 'T', version: '1', description } })
  expect(described('Only words.')).toContain('<p>Only words.</p>')
  expect(described('Only words.')).not.toContain('Guides')
  const guide = described('## (High)\n\nWords.\n\n```\ncode\n```')
  expect(guide).toContain('id="guide-high"')
  expect(wordsOf(guide)).toContain('Words. Code code')
})

test('a schema may refer to a part of a component, to itself, and have words beside a reference', () => {
  const leaf = { $ref: '#/components/schemas/Tree/properties/root', description: 'Its own words.' }
  const root = { description: 'A root.', properties: { leaf, leaves: { items: leaf } } }
  const page = pageOf({ components: { schemas: { Tree: { properties: { root } } } } })
  const words = wordsOf(page)
  expect(words).toContain('leaf #/components/schemas/Tree/properties/root Its own words. Fields')
  expect(words).toContain('leaves array of #/components/schemas/Tree/properties/root')
  expect(page).not.toContain('href="#schema-root"')
})

test('a requirement of a security scheme that is not declared is a bearer key', () => {
  const page = pageOf({ security: [{ lost: [] }], paths: { '/ships': { get: {} } } })
  expect(wordsOf(page)).toContain(`curl -i '/ships' \\ -H "Authorization: Bearer $API_KEY"`)
})

test('the example of a value is what the document says first, even if it is empty or false', () => {
  const values = {
    example: { example: 'a', examples: ['b'], default: 'c' },
    examples: { examples: ['d', 'e'], const: 'f' },
    default: { enum: ['g', 'h'], default: 'h' },
    enum: { type: 'string', enum: ['i', 'j'] },
    none: { type: ['null', 'string'] },
    off: { type: 'boolean', example: false },
  }
  const content = { 'application/json': { schema: { properties: values } } }
  const made = { example: 'a', examples: 'd', default: 'h', enum: 'i', none: null, off: false }
  const parameters = [{ name: 'limit', in: 'query', example: 5, schema: { default: 20 } }]
  const responsesOf = (examples: unknown[]) =>
    examples.map((example, index) => [201 + index, { content: { 'text/plain': { example } } }])
  const responses = Object.fromEntries([[200, { content }], ...responsesOf([false, null, ''])])
  const page = pageOf({ paths: { '/ships': { get: { parameters, responses } } } })
  expect(page).toContain(`>${JSON.stringify(made, null, 2).replaceAll('"', '&#34;')}</pre>`)
  expect(wordsOf(page)).toContain('201 false 202 null 203 Try it out')
  expect(page).toContain('placeholder="20"') // what counts if the field is left empty
})

test('the sample of a request has its required parameters, and no others', () => {
  const parameter = (place: string, name: string, example: string, required = true) => ({
    ...{ name, in: place, example, required },
  })
  const parameters = [
    parameter('query', 'place', 'a b&c'),
    parameter('query', 'optional', 'x', false),
    parameter('header', 'X-Trace', "it's"),
    parameter('header', 'X-Optional', 'x', false),
  ]
  const requestBody = { content: { 'text/csv': { example: 'a,b' }, 'text/plain': {} } }
  const page = pageOf({ paths: { '/ships': { post: { parameters, requestBody } } } })
  expect(wordsOf(page)).toContain(
    String.raw`curl -i '/ships?place=a+b%26c' \ -H 'X-Trace: it'\''s' \ -H 'Content-Type: text/csv' \ --data-raw 'a,b'`,
  )
  expect(page).toContain('data-type="text/csv"')
})

test('each status is listed, and the first 24 have a tab, with the code of each error', () => {
  const statuses = Array.from({ length: 30 }, (_, index) => String(400 + index))
  const content = { 'application/json': { example: { code: 'LOST' } } }
  const responses = Object.fromEntries(
    statuses.map((status) => [status, { description: `Of ${status}`, content }]),
  )
  const page = pageOf({ paths: { '/ships': { get: { operationId: 'get', responses } } } })
  expect(page.match(/name="get-answer"/g)).toHaveLength(24)
  expect(page.match(/data-status="4\d\d"/g)).toHaveLength(30)
  expect(page).toContain('<span class="what">400 LOST</span>')
})

test('a schema has its bounds, a short pattern, and its example', () => {
  const properties = {
    most: { type: 'integer', maximum: 5, example: 3 },
    short: { pattern: 'x'.repeat(40) },
    long: { pattern: 'y'.repeat(41) },
    ships: { type: 'array', items: { items: { $ref: '#/components/schemas/Ship' } } },
  }
  const Ship = { properties: { name: { type: 'string' } } }
  const words = wordsOf(pageOf({ components: { schemas: { Fleet: { properties }, Ship } } }))
  expect(words).toContain('most integer at most 5 · Example: 3')
  expect(words).toContain(`matches ${'x'.repeat(40)}`)
  expect(words).not.toContain('y'.repeat(41))
  expect(words).toContain('ships array of array of Ship Fields of Ship name string')
})

test('headings in any script and parts that resemble each other have ids of their own', () => {
  const description = '## Größe\n\n## 寸法\n\n## 速度\n\n## 寸法'
  const berths = (tag: string) => ({
    get: {
      tags: [tag],
      parameters: [
        { name: 'berth', in: 'query' },
        { name: 'berth', in: 'header' },
        { name: 'body', in: 'query' },
      ],
      requestBody: { content: { 'text/plain': {} } },
    },
  })
  const info = { title: 'T', version: '1', description }
  const paths = { '/berths/all': berths('a b'), '/berths-all': berths('a-b') }
  const page = docsPage(JSON.stringify({ openapi: '3.1.0', info, paths }))
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  expect(ids).toEqual([...new Set(ids)])
  for (const id of ['guide-größe', 'guide-寸法-2', 'tag-a-b-2', 'GET-berths-all-2']) {
    expect(ids).toContain(id)
    expect(page).toContain(`href="#${id}"`)
  }
})

test('the downloaded document has line breaks and exact integers', () => {
  const text = '{"info":{"x-greatest":9223372036854775807}}'
  expect(download(text)).toBe('{\n  "info": {\n    "x-greatest": 9223372036854775807\n  }\n}\n')
})
