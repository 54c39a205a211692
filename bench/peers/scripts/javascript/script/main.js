export default {
	echo({text}) { return text; },
};
