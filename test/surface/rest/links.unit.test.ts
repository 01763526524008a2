/** The URLs in `Location` and `Link`, from path templates with unusual characters. */
import { expect, test } from 'vitest'
import { deprecationHeaders, linksOf } from '../../../src/surface/rest/links.ts'
import { examplePath } from '../../../src/surface/rest/openapi/responses.ts'
import type { Operation } from '../../../src/surface/rest/operations.ts'

const baseUrl = 'https://petstore.example/v1'

test.each([
  ['/cafés/{id}', '/caf%C3%A9s/7'],
  ['/caf%C3%A9s/{id}', '/caf%C3%A9s/7'],
  ['/of sale/{id}', '/of%20sale/7'],
  ['/of%20sale/{id}', '/of%20sale/7'],
])('%s leads to %s', (creates, path) => {
  const links = linksOf({ creates } as Operation, baseUrl)
  expect(links({}, { id: 7n })).toEqual(['Location', baseUrl + path])
})

test('Location names what was made, even if something else was sent', () => {
  const links = linksOf({ creates: '/shops/{shop}/notes/{label}' } as unknown as Operation, baseUrl)
  expect(links({ shop: 'x', label: 'A b' }, { label: 'a-b' })).toEqual([
    'Location',
    `${baseUrl}/shops/x/notes/a-b`,
  ])
})

test('Link keeps every parameter that was sent, whatever its name and its value', () => {
  const names = ['größe', 'flag', 'count', 'text', 'a&b', 'cursor', 'absent']
  const queryParameters = new Map(names.map((name) => [name, () => undefined]))
  const operation = { paged: true, path: '/pets', queryParameters } as unknown as Operation
  const input = { größe: 1n, flag: false, count: 0, text: '', 'a&b': [] }
  expect(linksOf(operation, baseUrl)(input, [], 0n)).toEqual([
    'Link',
    `<${baseUrl}/pets?gr%C3%B6%C3%9Fe=1&flag=false&count=0&text=&cursor=0>; rel="next"`,
  ])
})

test.each([
  ['/pets', '/pets'],
  ['/日本', '/%E6%97%A5%E6%9C%AC'],
  ['/caf%C3%A9s/of sale', '/caf%C3%A9s/of%20sale'],
] as const)('the successor %s is %s in Link', (successor, path) => {
  const deprecation = { since: new Date(0), sunset: new Date(1), successor }
  const { Link } = deprecationHeaders(deprecation, baseUrl)
  expect(Link).toBe(`<${baseUrl}${path}>; rel="successor-version"`)
  expect(() => new Headers({ Link })).not.toThrow()
})

test('an example of a path has a value for each of its parameters', () => {
  expect(examplePath('/owners/{ownerId}/visits/{id}')).toBe('/owners/42/visits/42')
})
