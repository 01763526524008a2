/** The docs page: the OpenAPI document as HTML, written once at the start, readable without scripts. */
import { type OpenApi, readDocument } from './document.ts'
import { type Html, html } from './html.ts'
import { operation } from './operation.ts'
import { phrase, prose } from './prose.ts'
import { content } from './schema.ts'

/** The page of a document, which is given as its JSON. */
export function docsPage(text: string): string {
  const document = readDocument(text)
  const { info } = document
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${info.title}: the REST interface</title>
    <link rel="icon" href="icon.svg">
    <link rel="stylesheet" href="docs.css">
    <script src="docs.js" type="module"></script>
  </head>
  <body>
    <header>
      <a class="brand" href="#top"><img src="icon.svg" alt="" width="32" height="32">${info.title}</a>
      <search>
        <label for="search">Search</label>
        <input id="search" type="search" autocomplete="off" placeholder="cursor, POST, 404 …">
      </search>
    </header>
    <main id="top">
      ${introduction(document)}
      <p id="found" role="status"></p>
      ${document.tags.map((tag) => section(document, tag))}
      ${schemas(document)}
      ${headers(document)}
    </main>
  </body>
</html>
`.text
}

function introduction({ info, servers }: OpenApi): Html {
  const { contact, license } = info
  const mail = contact?.email && html`<a href="mailto:${contact.email}">${contact.email}</a>`
  const site = contact?.url && html`<a href="${contact.url}">${contact.name ?? contact.url}</a>`
  return html`
    <div class="introduction">
      <div>
        <h1>${info.title} <small>${info.version}</small></h1>
        ${prose(info.description)}
      </div>
      <dl class="facts">
        ${servers.map(
          ({ url, description }) =>
            html`<div><dt>${description ?? 'Server'}</dt><dd><code>${url}</code></dd></div>`,
        )}
        <div><dt>OpenAPI</dt><dd><a href="../v1/openapi.json">openapi.json</a></dd></div>
        ${
          contact &&
          html`<div><dt>Contact</dt><dd>${site || contact.name} ${mail || undefined}</dd></div>`
        }
        ${license && html`<div><dt>License</dt><dd>${license.name}</dd></div>`}
      </dl>
    </div>`
}

/** The operations under one heading. */
function section(document: OpenApi, tag: { name: string; description?: string }): Html {
  const pieces = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags?.includes(tag.name))
      .map(([method, object]) => operation(document, method.toUpperCase(), path, object)),
  )
  return html`
    <section aria-labelledby="tag-${tag.name}">
      <h2 id="tag-${tag.name}">${tag.name}</h2>
      ${prose(tag.description)}
      ${pieces}
    </section>`
}

function schemas(document: OpenApi): Html {
  const pieces = Object.entries(document.components.schemas ?? {}).map(
    ([name, schema]) => html`
      <details class="entry" id="schema-${name}">
        <summary><h3><code>${name}</code> <span class="title">${phrase(schema.description)}</span></h3></summary>
        <div class="inside">${content(document, schema)}</div>
      </details>`,
  )
  return html`
    <section aria-labelledby="schemas">
      <h2 id="schemas">Schemas</h2>
      <div class="columns">${pieces}</div>
    </section>`
}

function headers({ components }: OpenApi): Html {
  const pieces = Object.entries(components.headers ?? {}).map(
    ([name, { description, example }]) => html`
      <details class="entry" id="header-${name}">
        <summary><h3><code>${name}</code></h3></summary>
        <div class="inside">
          ${prose(description)}
          ${
            example === undefined
              ? undefined
              : html`<pre>${name}: ${typeof example === 'string' ? example : JSON.stringify(example)}</pre>`
          }
        </div>
      </details>`,
  )
  return html`
    <section aria-labelledby="headers">
      <h2 id="headers">Headers of answers</h2>
      <div class="columns">${pieces}</div>
    </section>`
}
