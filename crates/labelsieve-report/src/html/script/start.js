"use strict";
// Everything here adds to a page that is complete without it, except for the galleries, which are built when they come
// into view: thousands of pictures would take seconds at once. No markup is ever made from text.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};
const grouped = (n) => n.toLocaleString("en");
const counted = (n, noun) => `${grouped(n)} ${n === 1 ? noun : noun + (noun.endsWith("s") ? "es" : "s")}`;
